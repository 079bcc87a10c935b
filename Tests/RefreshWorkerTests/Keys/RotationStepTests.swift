import Crypto
import Storage
import Testing

@testable import RefreshWorker

@Suite("The next step of a rotation")
struct RotationStepTests {
    static let old = KeyID.named("00000001")
    static let new = KeyID.named("00000002")
    static let missing = KeyID.named("0000000f")
    static let binding = KeyID.named("0000000b")

    /// Returns a worker that holds both keys or only the old one, and seals with one of them.
    static func worker(_ id: String, holdsNew: Bool, seals: KeyID) -> WorkerReport {
        WorkerReport(id: id, keyIDs: holdsNew ? [old, new] : [old], sealingKeyID: seals)
    }

    static let alone = KeyRingSummary(sealing: old)
    static let pending = KeyRingSummary(sealing: old, pending: [new])
    static let promoted = KeyRingSummary(sealing: new, opening: [old])
    static let bound = KeyRingSummary(
        entries: promoted.entries + [KeyRingSummary.Entry(id: binding, role: .binds, isBinding: true)],
        sealingKeyID: new
    )
    static let retiredBinding = KeyRingSummary(
        entries: promoted.entries + [KeyRingSummary.Entry(id: binding, role: .retired, isBinding: true)],
        sealingKeyID: new
    )
    static let behind = worker("behind", holdsNew: false, seals: old)
    static let holding = worker("holding", holdsNew: true, seals: old)
    static let sealing = worker("sealing", holdsNew: true, seals: new)

    @Test(
        "depends on the ring, the workers and the stored tokens",
        arguments: [
            ("nothing begun", state(alone, [behind], [old: 4]), .addKey),
            ("nothing begun, nothing stored", state(alone), .addKey),
            ("a token that no key opens begins nothing", state(alone, inUse: [missing: 1]), .addKey),
            (
                "a worker lacks the pending key", state(pending, [holding, behind], [old: 4]),
                .awaitHolders(of: new, lacking: ["behind"])
            ),
            ("all hold the pending key", state(pending, [holding], [old: 4]), .promote(new)),
            ("no worker is alive", state(pending, inUse: [old: 4]), .promote(new)),
            (
                "a worker still seals with the old key", state(promoted, [sealing, holding], [old: 4]),
                .awaitSealers(with: new, lacking: ["holding"])
            ),
            (
                "a worker still seals with the old key although nothing is stored", state(promoted, [holding]),
                .awaitSealers(with: new, lacking: ["holding"])
            ),
            ("old tokens are left", state(promoted, [sealing], [old: 1, new: 3]), .reseal(with: new)),
            (
                "tokens stay bound to their key", state(bound, [sealing], [new: 4, binding: 4], isBegun: true),
                .finish(with: new)
            ),
            (
                "also if it is retired", state(retiredBinding, [sealing], [new: 4, binding: 4], isBegun: true),
                .finish(with: new)
            ),
            ("nothing is left", state(promoted, [sealing], [new: 4], isBegun: true), .finish(with: new)),
            ("an empty database", state(promoted, isBegun: true), .finish(with: new)),
            ("finished before: another rotation", state(promoted, [sealing], [new: 4]), .addKey),
            (
                "what is left cannot be opened",
                state(promoted, [sealing], [old: 1, new: 3], isBegun: true, isExhausted: true), .finish(with: new)
            ),
            (
                "tokens of a missing key cannot be sealed again",
                state(promoted, inUse: [missing: 2, new: 3], isBegun: true), .finish(with: new)
            ),
        ] as [(String, RotationState, RotationStep)]
    )
    func step(situation: String, state: RotationState, expected: RotationStep) {
        #expect(RotationStep.next(in: state) == expected, "\(situation)")
    }

    private static func state(
        _ keys: KeyRingSummary,
        _ workers: [WorkerReport] = [],
        _ keysInUse: [KeyID: Int] = [:],
        inUse: [KeyID: Int] = [:],
        isBegun: Bool = false,
        isExhausted: Bool = false
    ) -> RotationState {
        RotationState(
            keys: keys,
            workers: workers,
            keysInUse: keysInUse.merging(inUse) { $1 },
            isBegun: isBegun,
            isExhausted: isExhausted
        )
    }
}

extension KeyID {
    /// Returns the id of a valid text.
    static func named(_ text: String) -> KeyID {
        guard let id = KeyID(text) else { preconditionFailure("\(text) is not a key id") }
        return id
    }
}
