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
}

extension StoredGrant {
    static func read(
        ofUser user: String,
        eventsAtMost count: Int,
        by context: CommandContext
    ) async throws -> StoredGrant {
        try await context.withExistingStore(for: .reading) { store in
            guard let grant = try await store.grant(ofUser: user) else {
                throw CommandError(VendingError.unknownUser, ofUser: user)
            }
            return StoredGrant(
                grant: grant,
                history: try await store.events(of: grant.id, atMost: count),
                wait: try await wait(of: grant, in: store, by: context)
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
