# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# A Slurm of two nodes, node0 and node1, which are the hosts of ../hosts/net.sh; the controller is on node0. To be
# sourced as root, in a mount namespace of one's own: the folders of an installed Slurm are covered by those in $work.
# Without accounting and cgroups.

# cluster_folders: the nodes' network and what both share; once.
cluster_folders() {
  mkdir -p /run/netns
  mount -t tmpfs rig /run/netns  # names that another rig neither sees nor finds left over
  hosts_up 2 1gbit
  chmod 711 "${work:?a folder}"
  mkdir -p "$work"/{etc,log/node0,log/node1,munge,state,spool,tmp}
  mount --bind "$work/etc" /etc/slurm
  printf '%s\n' '127.0.0.1 localhost' '10.77.0.1 node0' '10.77.0.2 node1' >"$work/hosts"
  mount --bind "$work/hosts" /etc/hosts
  (umask 077 && head -c 1024 /dev/urandom >"$work/munge/key")
  munged --foreground --force --key-file="$work/munge/key" --socket="$work/munge/socket" --pid-file="$work/munge/pid" \
    --log-file="$work/munge/log" --seed-file="$work/munge/seed" >"$work/munge/out" 2>&1 &
}

# cluster_config: slurm.conf, to which a part may add. More CPUs than there are, so that ranks need not wait.
cluster_config() {
  echo CgroupPlugin=cgroup/v1 >"$work/etc/cgroup.conf"  # loaded, but nothing asks it
  cat >"$work/etc/slurm.conf" <<END
ClusterName=weft
SlurmctldHost=node0
SlurmUser=root
AuthInfo=socket=$work/munge/socket
CredType=cred/munge
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
ReturnToService=2
StateSaveLocation=$work/state
SlurmdSpoolDir=$work/spool/%n
TmpFS=$work/tmp/%n
SlurmctldPidFile=$work/slurmctld.pid
SlurmdPidFile=$work/%n.pid
SlurmctldLogFile=/var/log/slurmctld
SlurmdLogFile=/var/log/slurmd
SlurmdParameters=config_overrides
NodeName=node[0-1] CPUs=8
PartitionName=all Nodes=ALL Default=YES
END
}

# cluster_up [PREFIX...]: starts all daemons, without memory of earlier jobs; PREFIX stands before the command of
# node0's slurmd.
cluster_up() {
  cluster_down
  rm -rf "$work"/{spool,tmp,state}/*
  mkdir "$work"/{spool,tmp}/node{0,1}
  daemon 0 slurmctld -D -c
  daemon 0 "$@" slurmd -D
  daemon 1 slurmd -D
  await 30 both_idle
}

# daemon HOST COMMAND...: with a /var/log of its host's own.
daemon() {
  local host=$1
  shift
  # shellcheck disable=SC2016  # for the shell there
  on_host "$host" sh -c 'mount --bind "$0" /var/log && exec "$@"' "$work/log/node$host" "$@" \
    >>"$work/log/node$host/out" 2>&1 &
}

both_idle() { [[ $(on_host 0 sinfo -h -o '%T %D' 2>/dev/null) == "idle 2" ]]; }

cluster_down() {
  local file
  for file in "$work"/{slurmctld,node0,node1}.pid; do
    [[ ! -e $file ]] || kill "$(cat "$file")" || true
  done
  await 20 gone || kill -KILL "$(cat "$work"/*.pid)"
}
gone() { ! compgen -G "$work/*.pid" >/dev/null; }

# await SECONDS COMMAND...: until it succeeds.
await() {
  local i times=$(($1 * 5))
  shift
  for ((i = 0; i < times; i++)); do
    "$@" && return
    sleep 0.2
  done
  return 1
}
