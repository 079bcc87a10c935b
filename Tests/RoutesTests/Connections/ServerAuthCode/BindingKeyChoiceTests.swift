import Base
import Storage
import TestSupport
import Testing

@testable import Crypto
@testable import Routes

@Suite("The key that a code's refresh token is bound to", .timeLimit(.minutes(10)))
struct BindingKeyChoiceTests {
    private let newest: RingKey
    private let former: RingKey
    /// A ring to which a second binding key was added.
    private let ring: KeyRing

    init() throws {
        newest = try .randomBinding()
        former = try .randomBinding()
        ring = try KeyRing(keys: [.random(), newest, former])
    }

    private func worker(_ id: String, lacking keys: [RingKey] = []) -> WorkerReport {
        let lacking = keys.map(\.id)
        return WorkerReport(
            id: id,
            keyIDs: ring.keyIDs.filter { !lacking.contains($0) },
            sealingKeyID: ring.sealingKeyID
        )
    }

    @Test("is the newest one that all live workers hold")
    func choice() {
        #expect(BindingKeyChoice(from: ring, for: []) == .key(newest.id))
        #expect(BindingKeyChoice(from: ring, for: [worker("a"), worker("b")]) == .key(newest.id))
        let isLate = [worker("a"), worker("b", lacking: [newest])]
        #expect(BindingKeyChoice(from: ring, for: isLate) == .key(former.id))
        let isLateBefore = [worker("a", lacking: [former]), worker("b")]
        #expect(BindingKeyChoice(from: ring, for: isLateBefore) == .key(newest.id))
    }

    @Test("is none if no key is held by all, and the workers that lack the newest one are named")
    func unshared() {
        let workers = [worker("a"), worker("b", lacking: [newest, former]), worker("c", lacking: [newest])]
        #expect(BindingKeyChoice(from: ring, for: workers) == .unshared(newest: newest.id, lackedBy: ["b", "c"]))
        let crossed = [worker("b", lacking: [newest]), worker("c", lacking: [former])]
        #expect(BindingKeyChoice(from: ring, for: crossed) == .unshared(newest: newest.id, lackedBy: ["b"]))
    }

    @Test("is never a retired one")
    func retired() throws {
        let retired = former.with(role: .retired(since: .init(secondsSince1970: 0)))
        let ring = try KeyRing(keys: [.random(), newest, retired])
        let isLate = [worker("b", lacking: [newest])]
        #expect(BindingKeyChoice(from: ring, for: isLate) == .unshared(newest: newest.id, lackedBy: ["b"]))
        #expect(try BindingKeyChoice(from: KeyRing(keys: [.random(), retired]), for: isLate) == .missing)
    }

    @Test("is the former one of two workers until the other has read the new one, and no key before it has any")
    func twoWorkers() async throws {
        let fixture = try AccountFixture(bindsTokens: true, bindingKey: newest, formerBindingKey: former)
        fixture.codes.configure()
        fixture.google.setAccount("ya29.jane")
        let all = fixture.vault.ring.current.keyIDs
        let sealing = fixture.vault.ring.current.sealingKeyID
        _ = try await fixture.store.report(WorkerReport(id: "worker", keyIDs: all, sealingKeyID: sealing))
        func connect(_ code: String, whileOtherLacks lacking: [RingKey]) async throws -> KeyID? {
            let held = all.filter { id in !lacking.contains { $0.id == id } }
            _ = try await fixture.store.report(WorkerReport(id: "other", keyIDs: held, sealingKeyID: sealing))
            fixture.codes.grant(code, refresh: "1//\(code)")
            #expect(try await fixture.connect("ya29.jane", code: code).status < 300)
            return try await fixture.grant()?.refreshToken?.bindingKeyID
        }
        #expect(try await connect("4/0A", whileOtherLacks: [newest, former]) == nil)
        #expect(try await fixture.store.recordedKeyIDs().isDisjoint(with: [newest.id, former.id]))
        #expect(try await connect("4/0B", whileOtherLacks: [newest]) == former.id)
        #expect(try await connect("4/0C", whileOtherLacks: []) == newest.id)
        #expect(fixture.codes.bindingKeys == [nil, former.id, newest.id])
    }
}
