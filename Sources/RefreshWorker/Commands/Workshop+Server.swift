import Clocks
import PostgresStore

/// What is different where a PostgreSQL server keeps the grants.
extension Workshop {
    /// The clock that stored times go by: a server's, where there is one, since the machines that share it may disagree.
    static func clock(of place: DatabasePlace) -> any TimeSource {
        switch place {
        case .file: SystemTime()
        case .server: DatabaseClock(local: SystemTime())
        }
    }

    /// Opens the store on a server; answers `nil` where it holds no tables and none may be made.
    func openServer(
        _ address: DatabaseAddress,
        time: any TimeSource,
        makesTables: Bool
    ) async throws -> PostgresStore? {
        if !makesTables, try await ServerFacts.ask(address, time: SystemTime()).schema == nil { return nil }
        return try await PostgresStore.open(
            at: address,
            clock: time as? DatabaseClock ?? DatabaseClock(local: time),
            random: random,
            keepsNotices: configuration.noticeURL != nil
        )
    }
}
