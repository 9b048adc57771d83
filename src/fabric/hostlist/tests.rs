//! Hostlists against what scontrol printed, against the installed scontrol, and against hostile texts.

use super::*;
use proptest::prelude::*;
use std::process::Command;

const OLD: Dialect = Dialect { suffixes: false };

fn refusal(text: &str) -> String {
    expand(text, OLD).unwrap_err().to_string()
}

/// Inputs for which Slurm invents a name: Lockstep refuses them, or keeps the name whole.
const SLURM_GUESSES: [(&str, Option<&str>); 7] = [
    ("n[1-", None),
    ("n[5", None),
    ("n]", None),
    ("n[1-3", None),
    ("n[1-3,", None),
    ("n[0-18446744073709551615]", None),
    ("sw6f84b74219aa22869602735141708147", Some("sw6f84b74219aa22869602735141708147")),
];

/// scontrol folds the text and so keeps `foo0[10-20]`; we fold the names.
const FOLDED_OTHERWISE: &str = "foo003,foo0[10-20],foo[103-104],foo[10,12-14],foo-m11-16";

#[test]
fn what_scontrol_printed_is_what_we_say() {
    let oracle = include_str!("../../../tests/data/hostlist_oracle_22.05.8.tsv");
    let mut seen = 0;
    for line in oracle.lines().skip(1) {
        let [input, count, first, folded, _] = line.split('\t').collect::<Vec<_>>()[..] else {
            panic!("{line:?}")
        };
        seen += 1;
        let ours = expand(input, OLD);
        if let Some((_, kept)) = SLURM_GUESSES.iter().find(|(text, _)| *text == input) {
            assert_eq!(ours.ok().map(fold).as_deref(), *kept, "{input}");
            continue;
        }
        let count: usize = count.parse().unwrap();
        if count == 0 {
            assert!(ours.is_err(), "{input}");
            continue;
        }
        let names = ours.unwrap();
        assert_eq!(names.len(), count, "{input}");
        assert_eq!(Hostlist::parse(input, OLD).unwrap().count(), count as u64);
        assert_eq!(names[..count.min(12)].join(" "), first, "{input}");
        if input != FOLDED_OTHERWISE {
            assert_eq!(fold(&names), folded, "{input}");
        }
    }
    assert_eq!(seen, 53);
}

#[test]
fn a_refusal_names_the_column_and_the_way_out() {
    insta::assert_snapshot!(
        [
            "ok,n[1-3", "n[5", "é[1-2],n]", "n[1-3]]", "n[[1-3]]", "n[]", "n[1,a-c]", "n[3-1]", "n[1--3]", "n[01-3]x",
            "sh-[2,11]-4", "node[1-65537]", "n[0-18446744073709551615]", "n[1-65536]m[1-65536]", "n[1-65536],n[1-65536],n[1-65536],n[1-65536],m1",
            "n[99999999999999999999]",
        ]
        .map(|text| format!("{text}: {}", refusal(text)))
        .join("\n"),
        @r#"
    ok,n[1-3: column 5: `[` is never closed; add the missing `]`
    n[5: column 2: `[` is never closed; add the missing `]`
    é[1-2],n]: column 9: `]` without a `[` before it; remove it or open the bracket
    n[1-3]]: column 7: `]` without a `[` before it; remove it or open the bracket
    n[[1-3]]: column 3: a `[` inside brackets; close the bracket before it first
    n[]: column 3: `` cannot be read as a number or a range of numbers; write it as `7` or `1-16`
    n[1,a-c]: column 5: `a-c` cannot be read as a number or a range of numbers; write it as `7` or `1-16`
    n[3-1]: column 3: `3-1` runs backwards; write it as `1-3`
    n[1--3]: column 3: `1--3` cannot be read as a number or a range of numbers; write it as `7` or `1-16`
    n[01-3]x: column 8: `x` follows the last bracket, which Slurm reads only from 23.11 on; write the names out, or put a last number into brackets too: `n[1-2]-[4]`
    sh-[2,11]-4: column 10: `-4` follows the last bracket, which Slurm reads only from 23.11 on; write the names out, or put a last number into brackets too: `n[1-2]-[4]`
    node[1-65537]: column 6: `1-65537` is more than the 65536 names that Slurm takes in one range; split it into several ranges
    n[0-18446744073709551615]: column 3: `0-18446744073709551615` is more than the 65536 names that Slurm takes in one range; split it into several ranges
    n[1-65536]m[1-65536]: column 1: the list stands for more than 262144 names up to here; split it into several lists
    n[1-65536],n[1-65536],n[1-65536],n[1-65536],m1: column 45: the list stands for more than 262144 names up to here; split it into several lists
    n[99999999999999999999]: column 3: `99999999999999999999` cannot be read as a number or a range of numbers; write it as `7` or `1-16`
    "#
    );
}

/// clustershell 356.
#[test]
fn a_suffix_is_read_from_23_11_on() {
    let new = Dialect::of_slurm(23, 11);
    assert!(!Dialect::of_slurm(23, 2).suffixes);
    assert_eq!(expand("sh-[2,11]-4", new).unwrap(), ["sh-2-4", "sh-11-4"]);
    assert_eq!(expand("n[1-2]-ib,m", new).unwrap(), ["n1-ib", "n2-ib", "m"]);
}

#[test]
fn a_name_longer_than_any_host_is_refused() {
    let text = "a".repeat(250);
    assert!(expand(&format!("{text}[1-9]"), OLD).is_ok());
    assert!(refusal(&format!("{text}[000001-9]")).contains("longer than 255 bytes"));
}

fn piece() -> impl Strategy<Value = String> {
    let number = prop_oneof!["[0-9]{1,4}", "0{1,3}[0-9]{1,2}"];
    let range = prop_oneof![
        number.clone(),
        (number, 0u32..40).prop_map(|(low, more)| {
            let high = low.parse::<u32>().unwrap() + more;
            format!("{low}-{high}")
        }),
        "[0-9]{0,2}-?[0-9]{0,2}",
    ];
    prop_oneof![
        "[a-c]{1,2}",
        "[0-9]{1,3}",
        "-",
        prop::collection::vec(range, 1..4).prop_map(|ranges| format!("[{}]", ranges.join(","))),
    ]
}

fn hostlist() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::collection::vec(piece(), 1..4).prop_map(|p| p.concat()), 1..4)
        .prop_map(|tokens| tokens.join(","))
}

proptest! {
    #[test]
    fn whatever_is_folded_unfolds_again(names in prop::collection::vec("[a-c]{0,2}(0{0,2}[0-9]{1,3})?x{0,1}", 1..40)) {
        let names: Vec<_> = names.into_iter().filter(|name| !name.is_empty()).collect();
        prop_assert_eq!(expand(&fold(&names), OLD).unwrap(), names);
    }

    #[test]
    fn no_text_makes_it_panic(text in "[\\[\\],0-9a-b \\-é]{0,24}") {
        if let Ok(list) = Hostlist::parse(&text, Dialect { suffixes: true }) {
            prop_assert_eq!(list.names().len() as u64, list.count());
        }
    }
}

/// Asks the installed scontrol, whose version decides the dialect.
struct Scontrol {
    conf: std::path::PathBuf,
}

impl Scontrol {
    fn installed() -> Option<Self> {
        let conf = std::env::temp_dir().join(format!("lockstep-hostlist-{}.conf", std::process::id()));
        std::fs::write(&conf, "ClusterName=x\nSlurmctldHost=localhost\n").unwrap();
        let scontrol = Self { conf };
        scontrol.run(&["-V"]).map(|_| scontrol)
    }

    fn run(&self, args: &[&str]) -> Option<String> {
        let output = Command::new("scontrol").args(args).env("SLURM_CONF", &self.conf).output().ok()?;
        output.stderr.is_empty().then(|| String::from_utf8(output.stdout).unwrap())
    }

    fn dialect(&self) -> Dialect {
        let version = self.run(&["-V"]).unwrap();
        let numbers: Vec<u16> =
            version.split([' ', '.', '-']).filter_map(|part| part.trim().parse().ok()).collect();
        Dialect::of_slurm(numbers[0], numbers[1])
    }
}

impl Drop for Scontrol {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.conf);
    }
}

#[test]
fn agrees_with_the_installed_scontrol() {
    let Some(scontrol) = Scontrol::installed() else {
        println!("SKIPPED: scontrol is not installed, so nothing was compared with it");
        return;
    };
    let dialect = scontrol.dialect();
    let config = ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(250) };
    let mut runner = proptest::test_runner::TestRunner::new(config);
    runner
        .run(&hostlist(), |text| {
            let names = expand(&text, dialect).ok();
            let lines = names.as_ref().map(|names| names.iter().map(|name| format!("{name}\n")).collect());
            prop_assert_eq!(scontrol.run(&["--", "show", "hostnames", &text]), lines, "{}", text);
            if let Some(mut names) = names {
                // An argument may be 128 KiB long.
                names.truncate(1000);
                let folded = scontrol.run(&["--", "show", "hostlist", &names.join(",")]);
                prop_assert_eq!(folded, Some(fold(&names) + "\n"), "{}", text);
            }
            Ok(())
        })
        .unwrap();
}

/// clustershell 293 and 381, submitit PR 4.
#[test]
fn zeros_are_kept_name_by_name() {
    let names = expand("a[001-003],a07,a[8-10]", OLD).unwrap();
    assert_eq!(names, ["a001", "a002", "a003", "a07", "a8", "a9", "a10"]);
    assert_eq!(fold(&names), "a[001-003,07,8-10]");
}

#[test]
fn folded_ranges_are_short_enough_to_be_read_again() {
    let names: Vec<String> = (1..=65_540).map(|i| format!("n{i}")).collect();
    assert_eq!(fold(&names), "n[1-65536,65537-65540]");
    assert_eq!(expand(&fold(&names), OLD).unwrap(), names);
}
