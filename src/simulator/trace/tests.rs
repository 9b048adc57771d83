use super::*;

fn parse(text: &str) -> Result<Trace, TraceError> {
    let format = Format::detect(text).expect("a format");
    Trace::parse(text.as_bytes(), Path::new("jobs"), format)
}

/// A trace as a table, or its error.
fn show(text: &str) -> String {
    let trace = match parse(text) {
        Ok(trace) => trace,
        Err(error) => return format!("{error}\n"),
    };
    let mut shown = String::from("submit run limit devices\n");
    for TraceJob { submit, run, limit, devices } in &trace.jobs {
        let limit = limit.map_or("-".into(), |limit| limit.to_string());
        shown += &format!("{submit} {run} {limit} {devices}\n");
    }
    for (reason, jobs) in &trace.skipped {
        shown += &format!("{reason}: {jobs}\n");
    }
    shown
}

fn show_each(texts: &[&str]) -> String {
    texts.iter().map(|text| show(text)).collect()
}

#[test]
fn itp() {
    // The first jobs of cluster10.csv of Microsoft's ITP trace (MIT licence).
    let text = "\
job_id,submission_time,duration,num_gpu
5dc7d9cd-c300-9a4f-c3cd-dc2cc0935548,2266647,604,16
ec42aa41-3a0d-71f3-62dc-31b28dfb54c4,2371685,767,16
4feb9f90-7722-d636-5cec-0cd5dcf8732c,2709847,68253,2
16f47da1-6f4b-44e1-606d-973523805283,2843551,4936,2
";
    insta::assert_snapshot!(show(text), @"
    submit run limit devices
    0 604 - 16
    105038 767 - 16
    443200 68253 - 2
    576904 4936 - 2
    ");
}

#[test]
fn columns_go_by_name() {
    // Dates and CPU jobs as in Helios; a blank line, CR LF and a byte order mark as from a spreadsheet.
    let helios = "\u{feff}Job_ID,user,gpu_num,cpu_num,state,submit_time,start_time,duration,queue\r
7,\"u,1\",4,16,FAILED,2020-06-09 18:41:27,2020-06-09 18:41:27,249,0\r
\r
8,u2,0,16,COMPLETED,2020-06-09 18:41:27,2020-06-09 18:41:27,249,0\r
6,u3,1,1,COMPLETED,2020-06-08 18:41:27,2020-06-08 18:41:27,0,0\r
9,u4,8,1,CANCELLED,2020-06-09 18:50:00,,,\r
";
    insta::assert_snapshot!(show(helios), @"
    submit run limit devices
    0 1 - 1
    86400 249 - 4
    never started: 1
    no GPU: 1
    ");
    let simulators = "num_gpus,model,submit_time,run_time\n2.0,resnet50,10.9,99.5\n0.5,vgg16,0.0,1\n";
    insta::assert_snapshot!(show(simulators), @"
    submit run limit devices
    0 1 - 1
    10 100 - 2
    ");
}

#[test]
fn openb() {
    // Pods of openb_pod_list_default.csv of Alibaba's cluster-trace-gpu-v2023: one that shares a GPU, one
    // without, one that was never placed, one with a whole node's.
    let text = "\
name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time
openb-pod-0001,6000,12288,1,460,,LS,Running,427061,12902960,427061
openb-pod-0005,20000,65536,0,0,,LS,Running,2759674,12902960,2759676
openb-pod-0006,4000,16384,1,1000,,LS,Running,3019330,11815163,3019331
openb-pod-0061,11908,47104,1,1000,,BE,Pending,10001278,10001403,
openb-pod-0017,88000,327680,8,1000,,Burstable,Succeeded,9437497,10769854,9437497
";
    insta::assert_snapshot!(show(text), @"
    submit run limit devices
    0 12475899 - 1
    2592269 8795832 - 1
    9010436 1332357 - 8
    9574217 125 - 1
    no GPU: 1
    ");
}

#[test]
fn swf() {
    // The first and the last jobs of NASA-iPSC-1993-3.1-cln.swf of the Parallel Workloads Archive.
    let text = "\
; Version: 2.2
; Computer: Intel iPSC/860
    1        0     -1   1451  128     -1    -1   -1     -1    -1 -1   1   1  -1 -1 -1 -1 -1
    2     1460     -1   3726  128     -1    -1   -1     -1    -1 -1   1   1  -1 -1 -1 -1 -1
42262  7937431     -1     13    1     -1    -1   -1     -1    -1 -1   4   1   4 -1 -1 -1 -1
";
    insta::assert_snapshot!(show(text), @"
    submit run limit devices
    0 1451 - 128
    1460 3726 - 128
    7937431 13 - 1
    ");
}

#[test]
fn swf_jobs_of_every_kind() {
    let text = "\
1 100  5 60 -1 -1 -1 8  120 -1 1 1 1 1 1 1 -1 -1  ; processors as requested
2  90  5 60  4 -1 -1 8   -1 -1 1 1 1 1 1 1 -1 -1
3 110 -1 -1  4 -1 -1 8  120 -1 5 1 1 1 1 1 -1 -1  ; cancelled in the queue
4 120  0  0  2 -1 -1 2    0 -1 0 1 1 1 1 1 -1 -1
5 130  0  9 -1 -1 -1 -1  60 -1 1 1 1 1 1 1 -1 -1
6 140  0 50  1 -1 -1 1   60 -1 1 1 1 1 1 1 -1 -1  ; swapped out once: the sum and two bursts
6 140  0 20  1 -1 -1 1   60 -1 2 1 1 1 1 1 -1 -1
6  -1  9 30  1 -1 -1 1   60 -1 3 1 1 1 1 1 -1 -1
";
    insta::assert_snapshot!(show(text), @"
    submit run limit devices
    0 60 - 4
    10 60 120 8
    30 1 - 2
    50 50 60 1
    no processors: 1
    run time unknown: 1
    ");
}

#[test]
fn sacct_in_gpus() {
    let text = "\
JobID|State|Submit|Start|End|Elapsed|Timelimit|AllocTRES|ReqTRES|AllocCPUS|NNodes
41|COMPLETED|2024-05-01T08:00:00|2024-05-01T08:00:10|2024-05-01T09:00:10|01:00:00|1-00:00:00|billing=64,cpu=64,gres/gpu:a100=16,gres/gpu=16,mem=1000G,node=2|cpu=64,gres/gpu=16|64|2
41.batch|COMPLETED|2024-05-01T08:00:10|2024-05-01T08:00:10|2024-05-01T09:00:10|01:00:00||cpu=32,gres/gpu=8|||1
41.0|COMPLETED|2024-05-01T08:00:10|2024-05-01T08:00:10|2024-05-01T09:00:10|01:00:00||cpu=64,gres/gpu=16|||2
42_7|TIMEOUT|2024-05-01T07:59:00|2024-05-01T08:00:00|2024-05-01T08:02:00|00:02:00|00:02:00|cpu=8,gres/gpu:a100=2,gres/gpu:h100=1,gres/gpumem=80G|cpu=8|8|1
43|FAILED|2024-05-01T08:00:30|2024-05-01T08:01:00|2024-05-01T08:01:00|00:00:00|UNLIMITED|cpu=8,gres/gpu=8|cpu=8,gres/gpu=8|8|1
44|COMPLETED|2024-05-01T08:00:31|2024-05-01T08:01:00|2024-05-01T08:02:00|00:01:00|Partition_Limit|cpu=96,mem=10G|cpu=96|96|1
45_[8-9]|PENDING|2024-05-01T08:00:32|Unknown|Unknown|00:00:00|01:00:00||cpu=8,gres/gpu=8|0|1
46|CANCELLED by 1000|2024-05-01T08:00:33|None|2024-05-01T08:30:00|00:00:00|01:00:00||cpu=8,gres/gpu=8|0|1
47|CANCELLED by 1000|2024-05-01T08:00:34|2024-05-01T08:30:00|2024-05-01T08:30:00|00:00:00|01:00:00||cpu=8,gres/gpu=8|0|1
48|RUNNING|2024-05-01T08:00:35|2024-05-01T08:30:00|Unknown|05:00:00|12:00:00|cpu=8,gres/gpu=8|cpu=8,gres/gpu=8|8|1
";
    insta::assert_snapshot!(show(text), @"
    submit run limit devices
    0 120 120 3
    60 3600 86400 16
    90 1 - 8
    never started: 3
    no GPU: 1
    still running: 1
    ");
}

#[test]
fn sacct_without_gpus() {
    let cpus = "\
JobIDRaw|Submit|Start|End|NCPUS|NNodes|
1|2024-05-01T08:00:00|2024-05-01T08:00:10|2024-05-01T09:00:10|64|2|
2|2024-05-01T08:00:05|2024-05-01T23:00:00|2024-05-02T01:00:00|1|1|
3|2024-05-01T08:00:06|2024-05-01T09:00:00|2024-05-01T09:00:00|0|1|
";
    let nodes = "\
JobID|Submit|Start|ElapsedRaw|NNodes
1|2024-05-01T08:00:00|2024-05-01T08:00:10|77|2
";
    insta::assert_snapshot!(show_each(&[cpus, nodes]), @"
    submit run limit devices
    0 3600 - 64
    5 7200 - 1
    never started: 1
    submit run limit devices
    0 77 - 2
    ");
}

#[test]
fn damaged_tables() {
    let philly = "job_id,submit_time,duration,num_gpu\n\na,0,60,8\n";
    let openb = "num_gpu,creation_time,deletion_time,scheduled_time\n";
    let with = |head: &str, line: &str| show(&format!("{head}{line}\n"));
    let messages = [
        with(philly, "b,5,60"),
        with(philly, "b,5,60,eight"),
        with(philly, "b,5,60,-8"),
        with(philly, "b,2017-09-31 10:00:00,60,8"),
        with(philly, "b,,60,8"),
        with(philly, "b,5,-60,8"),
        with(philly, "\"b,5,60,8"),
        with("job_id,submit_time,duration\n", "b,5,60"),
        with("job_id,submit_time,num_gpu\n", "b,5,8"),
        with(openb, "1,10,5,10"),
        with("num_gpu,creation_time,deletion_time\n", "1,10,15"),
    ];
    insta::assert_snapshot!(messages.concat(), @"
    jobs:4: 3 fields where the header has 4; mend the line, or remove it if the file was cut off here
    jobs:4: column num_gpu: `eight` is no count; write a whole number, 0 or more
    jobs:4: column num_gpu: `-8` is no count; write a whole number, 0 or more
    jobs:4: column submit_time: `2017-09-31 10:00:00` is no time; write seconds or YYYY-MM-DD HH:MM:SS
    jobs:4: column submit_time: an empty field is no time; write seconds or YYYY-MM-DD HH:MM:SS
    jobs:4: column duration: `-60` is no duration; write seconds, 0 or more
    jobs:4: a quote that is not closed; close it on the same line
    jobs:1: column num_gpu: not in the header; name the column num_gpu, num_gpus, gpu_num, gpus or gpu
    jobs:1: column duration: not in the header; name the column duration, run_time, runtime, running_time or elapsed
    jobs:2: column deletion_time: `5` is before the pod's start; a pod ends after it starts: mend the line
    jobs:1: column scheduled_time: not in the header; add scheduled_time to the header and its values below
    ");
}

#[test]
fn damaged_swf() {
    insta::assert_snapshot!(show_each(&[
        "; Version: 2.2\n1 0 -1 1451 128 -1 -1\n",
        ";\n1 0 -1 long 128 -1 -1 -1 -1 -1 -1 1 1 -1 -1 -1 -1 -1\n",
        ";\n1 0 -1 1451 99999999999 -1 -1 -1 -1 -1 -1 1 1 -1 -1 -1 -1 -1\n",
    ]), @"
    jobs:2: 7 fields where SWF has 18; mend the line, or remove it if the file was cut off here
    jobs:2: column run time: `long` is no number; write -1 for what is not known
    jobs:2: column allocated processors: `99999999999` is no count; write a whole number, 0 or more
    ");
}

#[test]
fn damaged_sacct() {
    let head = "JobID|Submit|Start|End|Elapsed|Timelimit|AllocTRES\n";
    let messages = [
        show(&format!(
            "{head}1|2024-05-01T08:00:00|2024-05-01T08:00:00|2024-05-01T08:01:00|60 s||gres/gpu=8\n"
        )),
        show(&format!(
            "{head}1|2024-05-01T08:00:00|2024-05-01T08:00:00|2024-05-01T08:01:00|00:01:00|60|gres/gpu=8\n"
        )),
        show(&format!(
            "{head}1|2024-05-01T08:00:00|2024-05-01T08:00:00|2024-05-01T08:01:00|00:01:00||gres/gpu:8\n"
        )),
        show(&format!("{head}1|2024-05-01T08:00:00|2024-05-01T08:00:00|2024-05-01T07:00:00|||gres/gpu=8\n")),
        show(&format!("{head}1|May 1|2024-05-01T08:00:00|2024-05-01T08:01:00|00:01:00||gres/gpu=8\n")),
        show("JobID|Submit|Start|AllocTRES\n"),
        show("JobID|Submit|Start|Elapsed\n"),
    ];
    insta::assert_snapshot!(messages.concat(), @"
    jobs:2: column Elapsed: `60 s` is no duration; write it as HH:MM:SS or D-HH:MM:SS
    jobs:2: column Timelimit: `60` is no duration; write it as HH:MM:SS or D-HH:MM:SS
    jobs:2: column AllocTRES: `gres/gpu:8` is no TRES; write it as name=count
    jobs:2: column End: `2024-05-01T07:00:00` is before its start `2024-05-01T08:00:00`; a job ends after it starts: mend the line
    jobs:2: column Submit: `May 1` is no time; write seconds or YYYY-MM-DD HH:MM:SS
    jobs:1: column Elapsed: not in the header; name the column Elapsed, ElapsedRaw or End
    jobs:1: column AllocTRES: not in the header; name the column AllocTRES, ReqTRES, AllocCPUS, NCPUS, ReqCPUS, NNodes, AllocNodes or ReqNodes
    ");
}

#[test]
fn no_trace() {
    let folder = tempfile::tempdir().unwrap();
    let read = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        let error = Trace::read(&path).unwrap_err().to_string();
        format!("{}\n", error.replace(&format!("{}/", folder.path().display()), ""))
    };
    let messages = [
        read("empty.csv", b""),
        read("header.csv", b"job_id,submit_time,duration,num_gpu\n"),
        read("cpus.csv", b"job_id,submit_time,duration,num_gpu\na,0,60,0\nb,0,,1\n"),
        read("comments.swf", b"; Version: 2.2\n"),
        read("nodes.csv", b"sn,cpu_milli,memory_mib,gpu,model\nopenb-node-0000,64000,262144,2,P100\n"),
        read("latin.csv", b"job_id,submit_time,duration,num_gpu\nM\xfcnchen,0,60,8\n"),
    ];
    insta::assert_snapshot!(messages.concat(), @"
    empty.csv: not a trace of a known format; what can be read: Philly-style CSV (job_id,submit_time,duration,num_gpu); Alibaba's openb pod list; the Standard Workload Format; `sacct -P` with its header
    header.csv: no job that ran; choose a trace with jobs that did
    cpus.csv: no job that ran (left out: 1 never started, 1 no GPU); choose a trace with jobs that did
    comments.swf: no job that ran; choose a trace with jobs that did
    nodes.csv: not a trace of a known format; what can be read: Philly-style CSV (job_id,submit_time,duration,num_gpu); Alibaba's openb pod list; the Standard Workload Format; `sacct -P` with its header
    latin.csv:2: bytes that are no text; save the trace as UTF-8, uncompressed
    ");
    let absent = Trace::read(&folder.path().join("absent")).unwrap_err();
    assert!(matches!(absent, TraceError::Unreadable { .. }), "{absent}");
}

#[test]
fn formats_are_told_apart() {
    for (text, format) in [
        ("job_id,submission_time,duration,num_gpu\n", Some(Format::Philly)),
        ("\n\"num_gpus\",\"submit_time\"\n", Some(Format::Philly)),
        ("name,num_gpu,creation_time\n", Some(Format::Openb)),
        ("\u{feff}; Version: 2.2\n", Some(Format::Swf)),
        ("1 0 -1 1451 128 -1 -1 -1 -1 -1 -1 1 1 -1 -1 -1 -1 -1\n", Some(Format::Swf)),
        ("JobID|JobName|State\n", Some(Format::Sacct)),
        ("JobID,Submit\n", None),
        ("{\"jobs\": []}", None),
        ("", None),
    ] {
        assert_eq!(Format::detect(text), format, "{text}");
    }
}

#[test]
fn a_file_longer_than_the_head_that_is_looked_at() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("long.csv");
    let lines: String = (0..10_000).map(|job| format!("job-{job},{job},60,8\n")).collect();
    assert!(lines.len() as u64 > 2 * HEAD);
    std::fs::write(&path, format!("job_id,submit_time,duration,num_gpu\n{lines}")).unwrap();
    let trace = Trace::read(&path).unwrap();
    assert_eq!((trace.jobs.len(), trace.span(), trace.max_devices()), (10_000, 9_999, 8));
    assert_eq!(trace.device_seconds(), 10_000 * 60 * 8);
}

#[test]
fn scaling_meets_the_load() {
    let job = |submit, devices| TraceJob { submit, run: 600, limit: None, devices };
    let jobs: Vec<TraceJob> = (0..1000).map(|index| job(index * 37, 1 + (index % 8) as u32)).collect();
    let original = Trace { jobs, ..Trace::default() };
    for load in [0.1, 0.9, 1.0, 3.0] {
        let mut trace = original.clone();
        trace.scale_to_load(load, 64);
        let offered = trace.offered_load(64).unwrap();
        assert!((offered / load - 1.0).abs() < 1e-3, "{offered} instead of {load}");
        assert!(trace.jobs.is_sorted_by_key(|job| job.submit));
        assert_eq!(trace.device_seconds(), original.device_seconds());
    }
    for load in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let mut trace = original.clone();
        trace.scale_to_load(load, 64);
        assert_eq!(trace, original, "{load}");
    }
    let mut at_once = original.clone();
    at_once.truncate(1);
    at_once.scale_to_load(0.5, 64);
    assert_eq!((at_once.jobs.len(), at_once.offered_load(64)), (1, None));
}

/// A sound text of each format.
const SOUND: [&str; 4] = [
    "job_id,submit_time,duration,num_gpu\na,7,60,8\nb,2020-06-09 18:41:27,5,1\nc,3,,2\n",
    "num_gpu,creation_time,deletion_time,scheduled_time\n8,10,25,11\n1,5,9,\n",
    "; Version: 2.2\n1 0 -1 1451 128 -1 -1 -1 -1 -1 1 1 1 -1 -1 -1 -1 -1\n",
    "JobID|Submit|Start|End|Elapsed|Timelimit|AllocTRES|ReqTRES|NNodes\n\
     1|2024-05-01T08:00:00|2024-05-01T08:00:10|2024-05-01T09:00:10|01:00:00|1-00:00:00|cpu=8,gres/gpu=8||1\n\
     2|2024-05-01T07:00:00|2024-05-01T08:00:10|2024-05-01T09:00:10||UNLIMITED|cpu=8|gres/gpu:a=8|1\n",
];

proptest::proptest! {
    /// Whatever happens to a text, reading it ends in a trace that keeps its promises, or in an error.
    #[test]
    fn damage_never_breaks_a_promise(
        format in 0..4_usize,
        edits in proptest::collection::vec((0..400_usize, "[-0-9.:,|;=\"e \n\r]{0,12}"), 0..4),
    ) {
        let mut text = SOUND[format].to_owned();
        for (at, put) in edits {
            let at = at % (text.len() + 1);
            text.replace_range(at..(at + put.len() / 2).min(text.len()), &put);
        }
        if let Ok(trace) = Trace::parse(text.as_bytes(), Path::new("jobs"), Format::ALL[format]) {
            proptest::prop_assert_eq!(trace.jobs.first().map(|job| job.submit), Some(0));
            proptest::prop_assert!(trace.jobs.is_sorted_by_key(|job| job.submit));
            proptest::prop_assert!(trace.jobs.iter().all(|job| job.run >= 1 && job.devices >= 1));
        }
    }
}
