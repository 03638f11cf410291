// A ring all-reduce over all hosts of a 16-ary fat tree in SimGrid: what benchmarks/fabric.py is measured against.
// Arguments: ranks, bytes of the whole array.  Prints the simulated seconds.
#include <simgrid/s4u.hpp>

#include <cstdio>
#include <string>
#include <vector>

namespace s4u = simgrid::s4u;

int main(int argc, char** argv)
{
  s4u::Engine engine(&argc, argv);
  const int ranks    = std::stoi(argv[1]);
  const double bytes = std::stod(argv[2]);
  s4u::Engine::set_config("network/model:CM02");
  s4u::Engine::set_config("network/crosstraffic:0");
  s4u::Engine::set_config("network/TCP-gamma:0");

  auto* zone = s4u::create_fatTree_zone(
      "tree", nullptr, s4u::FatTreeParams(3, {8, 8, 16}, {1, 8, 8}, {1, 1, 1}),
      s4u::ClusterCallbacks([](s4u::NetZone* in, const std::vector<unsigned long>&, unsigned long id) {
        auto* host = in->create_host("chip" + std::to_string(id), 1e9)->seal();
        return std::make_pair(host->get_netpoint(), static_cast<simgrid::kernel::routing::NetPoint*>(nullptr));
      }),
      50e9, 0.5e-6, s4u::Link::SharingPolicy::SPLITDUPLEX);
  zone->seal();

  const double chunk = bytes / ranks;
  for (int rank = 0; rank < ranks; rank++)
    s4u::Actor::create("rank", s4u::Host::by_name("chip" + std::to_string(rank)), [rank, ranks, chunk] {
      static int token;
      auto* to   = s4u::Mailbox::by_name(std::to_string((rank + 1) % ranks));
      auto* from = s4u::Mailbox::by_name(std::to_string(rank));
      for (int round = 0; round < 2 * (ranks - 1); round++) {
        auto send = to->put_async(&token, static_cast<uint64_t>(chunk));
        from->get<int>();
        send->wait();
      }
    });
  engine.run();
  std::printf("%.9g\n", s4u::Engine::get_clock());
  return 0;
}
