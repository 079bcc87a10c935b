private import Synchronization

/// The incidents of a database that nobody has taken yet, shared by all connections of a store.
final class IncidentLog: Sendable {
    private let incidents = Mutex<[StoreIncident]>([])

    var pending: [StoreIncident] { incidents.withLock(\.self) }

    var isEmpty: Bool { incidents.withLock(\.isEmpty) }

    func record(_ incident: StoreIncident) { incidents.withLock { $0.append(incident) } }

    /// The incidents since the last call.
    func take() -> [StoreIncident] {
        incidents.withLock { incidents in
            defer { incidents = [] }
            return incidents
        }
    }
}
