from collections.abc import Sequence

from ciw import dists as dists

class DataRecord:
    id_number: int
    node: int
    arrival_date: float
    exit_date: float

class Individual:
    id_number: int

class Node:
    all_individuals: list[Individual]

class Network: ...

class Simulation:
    nodes: list[Node]
    def __init__(self, network: Network) -> None: ...
    def simulate_until_max_time(self, max_simulation_time: float) -> None: ...
    def get_all_records(self) -> list[DataRecord]: ...

def create_network(
    *,
    arrival_distributions: Sequence[dists.Distribution | None],
    service_distributions: Sequence[dists.Distribution],
    number_of_servers: Sequence[int],
    routing: Sequence[Sequence[float]],
) -> Network: ...
def seed(x: int) -> None: ...
