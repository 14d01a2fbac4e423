# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Hosts of one machine: network namespaces wefthost0, 1, ... on a switch, each by a cable (veth) of a
# shaped rate. To be sourced. Needs root, ip and tc.

# hosts_up COUNT RATE: host i is 10.77.0.(i+1), its cable carries RATE (as tc writes it) each way.
hosts_up() {
  local i
  hosts_down
  ip netns add weftswitch
  ip -n weftswitch link add switch type bridge
  ip -n weftswitch link set switch up
  for ((i = 0; i < $1; i++)); do
    ip netns add "wefthost$i"
    ip -n weftswitch link add "port$i" mtu 9000 type veth peer name eth0 mtu 9000 netns "wefthost$i"
    ip -n weftswitch link set "port$i" master switch up
    ip -n "wefthost$i" addr add "10.77.0.$((i + 1))/24" dev eth0
    ip -n "wefthost$i" link set eth0 up
    ip -n "wefthost$i" link set lo up
    host_rate "$i" "$2"
  done
}

hosts_down() {
  local name
  for name in $(ip netns list | sed -n 's/^\(weft\(host[0-9]*\|switch\)\).*/\1/p'); do
    ip netns del "$name"
  done
}

# host_rate HOST RATE: both directions.
host_rate() {
  tc -n "wefthost$1" qdisc replace dev eth0 root tbf rate "$2" burst 256kb latency 400ms
  tc -n weftswitch qdisc replace dev "port$1" root tbf rate "$2" burst 256kb latency 400ms
}

# host_cut HOST, host_join HOST: the cable is out, and in again.
host_cut() { ip -n weftswitch link set "port$1" down; }
host_join() { ip -n weftswitch link set "port$1" up; }

# on_host HOST COMMAND...: with a host name of its own.
on_host() {
  local host=$1
  shift
  ip netns exec "wefthost$host" unshare --uts sh -c 'hostname "$0"; exec "$@"' "node$host" "$@"
}
