import Base
import Scheduler
import Status
import Storage

/// What the store knows about one user's grant.
struct StoredGrant {
    var grant: Grant
    var history: [GrantEvent]
    /// Why the grant gets no refresh although it needs one.
    var wait: String?
    /// The user's other grants.
    var others: [Grant] = []
}

extension StoredGrant {
    static func read(
        ofUser user: String,
        connection: ConnectionID,
        eventsAtMost count: Int,
        by context: CommandContext
    ) async throws -> StoredGrant {
        try await context.withExistingStore(for: .reading) { store in
            let grants = try await store.grants(ofUser: user)
            guard let grant = grants.first(where: { $0.connection == connection }) else {
                throw CommandError(noGrantOf: user, connection: connection, among: grants)
            }
            return StoredGrant(
                grant: grant,
                history: try await store.events(of: grant.id, atMost: count),
                wait: try await wait(of: grant, in: store, by: context),
                others: grants.filter { $0.id != grant.id }
            )
        }
    }

    private static func wait(
        of grant: Grant,
        in store: any Store,
        by context: CommandContext
    ) async throws -> String? {
        let now = context.time.now
        let client = ClientStatus(
            id: grant.clientID,
            stored: try await store.clientHealth()[grant.clientID],
            maxRate: context.configuration.maxRate,
            at: try await store.leaseTime(),
            wallClock: now
        )
        if let wait = client.wait(of: grant, at: now) { return wait }
        guard grant.needsRefresh(at: now), try await store.liveWorkers().isEmpty else { return nil }
        let lastPass = try await NotedTime.lastPass.read(from: store)
        if let lastPass, now - lastPass <= StatusSnapshot.tolerablePassInterval { return nil }
        return "waits: no worker is running"
    }
}
