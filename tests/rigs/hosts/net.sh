# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Hosts of one machine: network namespaces wefthost0, 1, ... on a switch, each by a cable (veth) of a
# shaped rate. To be sourced. Needs root, ip and tc. With another hosts_net, hosts of one's own.
hosts_net=weft

# hosts_up COUNT RATE: host i is 10.77.0.(i+1), its cable carries RATE (as tc writes it) each way.
hosts_up() {
  local i
  hosts_down
  ip netns add "${hosts_net}switch"
  ip -n "${hosts_net}switch" link add switch type bridge
  ip -n "${hosts_net}switch" link set switch up
  for ((i = 0; i < $1; i++)); do
    ip netns add "${hosts_net}host$i"
    ip -n "${hosts_net}switch" link add "port$i" mtu 9000 type veth peer name eth0 mtu 9000 netns "${hosts_net}host$i"
    ip -n "${hosts_net}switch" link set "port$i" master switch up
    ip -n "${hosts_net}host$i" addr add "10.77.0.$((i + 1))/24" dev eth0
    ip -n "${hosts_net}host$i" link set eth0 up
    ip -n "${hosts_net}host$i" link set lo up
    host_rate "$i" "$2"
  done
}

hosts_down() {
  local name
  for name in $(ip netns list | sed -n "s/^\($hosts_net\(host[0-9]*\|switch\)\).*/\1/p"); do
    ip netns pids "$name" | xargs -r kill -KILL  # a launcher's daemons outlive it
    ip netns del "$name"
  done
}

# host_rate HOST RATE: both directions.
host_rate() {
  tc -n "${hosts_net}host$1" qdisc replace dev eth0 root tbf rate "$2" burst 256kb latency 400ms
  tc -n "${hosts_net}switch" qdisc replace dev "port$1" root tbf rate "$2" burst 256kb latency 400ms
}

# host_cut HOST, host_join HOST: the cable is out, and in again.
host_cut() { ip -n "${hosts_net}switch" link set "port$1" down; }
host_join() { ip -n "${hosts_net}switch" link set "port$1" up; }

# on_host HOST COMMAND...: with a host name of its own.
on_host() {
  local host=$1
  shift
  # shellcheck disable=SC2016  # for the shell there
  ip netns exec "${hosts_net}host$host" unshare --uts sh -c 'hostname "$0"; exec "$@"' "node$host" "$@"
}
