import TestSupport
import Testing

@testable import Base
@testable import Crypto
@testable import Storage

@Suite("The checks of a database's keys")
struct KeyCheckTests {
    private let first: RingKey
    private let second: RingKey
    private let store: TestStore

    init() throws {
        first = try .random()
        second = try .random()
        store = try TestStore(time: ManualTime())
    }

    @Test("fit a ring that opens all, whatever other keys it holds")
    func fits() throws {
        var checks = KeyChecks()
        #expect(try checks.fit(of: KeyRing(keys: [first])) == .fits, "nothing is sealed yet")
        try checks.add(first.id, of: KeyRing(keys: [first]))
        #expect(try checks.fit(of: KeyRing(keys: [first])) == .fits)
        #expect(try checks.fit(of: KeyRing(keys: [second, first])) == .fits)
    }

    @Test("distinguish a ring that lacks a key from a foreign ring")
    func others() throws {
        let both = try KeyRing(keys: [second, first])
        var checks = KeyChecks()
        try checks.add(first.id, of: both)
        try checks.add(second.id, of: both)
        #expect(try checks.fit(of: KeyRing(keys: [first])) == .lacks([second.id]))
        #expect(try checks.fit(of: KeyRing(keys: [.random()])) == .foreign([first.id, second.id].sorted()))
        checks.remove(second.id)
        #expect(try checks.fit(of: KeyRing(keys: [first])) == .fits)
        checks.addUnchecked(second.id)
        #expect(try checks.fit(of: KeyRing(keys: [first])) == .lacks([second.id]))
        #expect(try checks.fit(of: both) == .fits)
    }

    @Test("know a binding key, which seals no token, and its kind")
    func binding() async throws {
        let binding = try RingKey.randomBinding()
        let both = try KeyRing(keys: [first, binding])
        try await store.recordKey(first.id, of: both)
        try await store.recordKey(binding.id, of: both)
        #expect(try await store.fit(of: both) == .fits)
        #expect(try await store.fit(of: KeyRing(keys: [first])) == .lacks([binding.id]))
        let other = RingKey(id: binding.id, material: binding.material, role: .active)
        #expect(try await store.fit(of: KeyRing(keys: [first, other])) == .foreign([binding.id]))
    }

    @Test("follow from the tokens that are bound")
    func derivedFromBound() async throws {
        let binding = try RingKey.randomBinding()
        let both = try KeyRing(keys: [first, binding])
        let vault = TokenVault(ring: try ReloadableKeyRing { both })
        var grant = try Sample.grant(1)
        grant.accessToken = nil
        grant.refreshToken = try vault.seal(refreshToken: Secret("r"), for: grant.id, boundTo: binding.id)
        try await store.add([grant])
        #expect(try await store.fit(of: both) == .fits)
        #expect(try await store.recordedKeyIDs().contains(binding.id))
        #expect(try await store.fit(of: KeyRing(keys: [first])) == .lacks([binding.id]))
    }

    @Test("are the same after they were stored")
    func text() throws {
        var checks = KeyChecks()
        try checks.add(first.id, of: KeyRing(keys: [first]))
        checks.addUnchecked(second.id)
        #expect(KeyChecks(stored: checks.stored) == checks)
        #expect(KeyChecks(stored: "") == KeyChecks())
    }

    @Test(
        "are refused if they are damaged",
        arguments: ["x", "0000000a=", "0000000a=zz", "0000000a=00", "=", "0000000a=00=00"]
    )
    func damaged(text: String) {
        #expect(KeyChecks(stored: text) == nil)
    }

    @Test("follow from the stored tokens if there are none yet")
    func derived() async throws {
        try await insertGrant(sealedBy: KeyRing(keys: [first]))
        #expect(try await store.fit(of: KeyRing(keys: [second])) == .foreign([first.id]))
        #expect(try await store.recordedKeyIDs() == [], "a foreign ring wrote checks")
        #expect(try await store.fit(of: KeyRing(keys: [second, first])) == .fits)
        #expect(try await store.recordedKeyIDs() == [first.id])
        try await store.recordKey(second.id, of: KeyRing(keys: [second, first]))
        #expect(try await store.fit(of: KeyRing(keys: [first])) == .lacks([second.id]))
    }

    @Test("accept the first of two rings that start at the same time")
    func race() async throws {
        let (one, other) = (try KeyRing(keys: [first]), try KeyRing(keys: [second]))
        #expect(try await store.fit(of: one) == .fits)
        #expect(try await store.fit(of: other) == .fits, "nothing is sealed yet")
        #expect(try await store.recordKey(first.id, of: one))
        #expect(try await !store.recordKey(second.id, of: other), "the ring does not fit any more")
        #expect(try await store.recordKey(first.id, of: one), "it is recorded already")
        #expect(try await store.fit(of: other) == .foreign([first.id]))
        #expect(try await store.fit(of: one) == .fits)
    }

    @Test("are replaced only by a process that has read the current ones", arguments: StoreKind.allCases)
    func swap(kind: StoreKind) async throws {
        try await kind.withStore { store, _ in
            let absent = try await store.note("a")
            #expect(absent == nil)
            #expect(try await !store.replaceNote("a", from: "x", with: "y"))
            #expect(try await store.replaceNote("a", from: nil, with: "x"))
            #expect(try await !store.replaceNote("a", from: nil, with: "y"))
            #expect(try await store.replaceNote("a", from: "x", with: "y"))
            #expect(try await store.note("a") == "y")
        }
    }

    private func insertGrant(sealedBy ring: KeyRing) async throws {
        let vault = TokenVault(ring: try ReloadableKeyRing { ring })
        let id = GrantID(rawValue: 1)
        let now = Timestamp(secondsSince1970: 1_800_000_000)
        let token = try vault.seal(refreshToken: Secret("refresh"), for: id)
        let grant = Grant.connected(
            id: id,
            userID: "user",
            incoming: IncomingTokens(clientID: "client", refreshToken: token),
            dueAt: now,
            at: now
        ).grant
        try await store.transact { try $0.insert(grant) }
    }
}
