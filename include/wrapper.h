/*
 * What bindgen reads: Slurm's internal records and the shim. build.rs picks the types and constants it keeps.
 */
#include "config.h"
#include "slurm/slurm.h"
#include "slurm/slurm_errno.h"
#include "src/common/gres.h"
#include "src/common/job_resources.h"
#include "src/common/log.h"
#include "src/common/node_conf.h"
#include "src/common/select.h"
#include "src/slurmctld/slurmctld.h"
#include "shim.h"
