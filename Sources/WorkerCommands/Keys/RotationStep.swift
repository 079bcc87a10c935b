import Secrets
import Store

/// The facts from which a rotation derives its next step.
struct RotationState: Equatable, Sendable {
    var keys: KeyRingSummary
    var workers: [WorkerReport]
    /// The number of stored tokens that each key seals.
    var keysInUse: [KeyID: Int]
    /// `true` if this run has begun a rotation; otherwise it continues an unfinished one or begins a new one.
    var isBegun = false
    /// `true` if the last pass over all grants did not find any more tokens that it could seal again.
    var isExhausted = false

    /// Keys of the ring, other than the sealing key, that seal stored tokens.
    var outdatedKeys: Set<KeyID> {
        Set(keysInUse.filter { $0.value > 0 && $0.key != keys.sealingKeyID && keys.role(of: $0.key) != nil }.keys)
    }

    /// The number of tokens to seal again.
    var outdatedTokens: Int { outdatedKeys.reduce(0) { $0 + (keysInUse[$1] ?? 0) } }
}

/// The next step of a rotation.
///
/// It depends only on what is stored, so an interrupted rotation continues where it stopped.
enum RotationStep: Equatable, Sendable {
    case addKey
    /// Some workers cannot open tokens that the new key will seal.
    case awaitHolders(of: KeyID, lacking: [String])
    case promote(KeyID)
    /// Some workers still seal with another key, so a pass now would miss their tokens.
    case awaitSealers(with: KeyID, lacking: [String])
    case reseal(with: KeyID)
    case finish(with: KeyID)

    static func next(in state: RotationState) -> RotationStep {
        if let key = state.keys.firstPending {
            let lacking = state.workers.filter { !$0.keyIDs.contains(key) }.map(\.id)
            return lacking.isEmpty ? .promote(key) : .awaitHolders(of: key, lacking: lacking)
        }
        let key = state.keys.sealingKeyID
        let lacking = state.workers.filter { $0.sealingKeyID != key }.map(\.id)
        let isUnfinished = !state.outdatedKeys.isEmpty || !lacking.isEmpty
        guard state.isBegun || isUnfinished else { return .addKey }
        guard lacking.isEmpty else { return .awaitSealers(with: key, lacking: lacking) }
        return state.outdatedKeys.isEmpty || state.isExhausted ? .finish(with: key) : .reseal(with: key)
    }
}
