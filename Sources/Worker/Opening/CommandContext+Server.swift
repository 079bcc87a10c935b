package import Base
import Storage

/// The differences for a PostgreSQL database.
extension CommandContext {
    /// Returns the clock for stored times: the server's if there is one, because the clocks of its clients may differ.
    package static func clock(of location: DatabaseLocation) -> any TimeSource {
        switch location {
        case .file: SystemTime()
        case .server: DatabaseClock(local: SystemTime())
        }
    }

    /// Opens the store on a server; returns `nil` if it does not have tables and may not create them.
    func openServer(
        _ address: DatabaseAddress,
        time: any TimeSource,
        makesTables: Bool
    ) async throws -> PostgresStore? {
        if !makesTables, try await ServerFacts.read(address, time: SystemTime()).schema == nil { return nil }
        return try await PostgresStore.open(
            at: address,
            clock: time as? DatabaseClock ?? DatabaseClock(local: time),
            random: random,
            keepsNotices: configuration.noticeURL != nil
        )
    }
}
