import Crypto
import Storage

/// The facts from which a rotation derives its next step.
struct RotationState: Equatable, Sendable {
    var keys: KeyRingSummary
    var workers: [WorkerReport]
    /// The number of stored tokens that each key seals.
    var keysInUse: [KeyID: Int]
    /// `true` if this run has begun a rotation. Otherwise it continues an unfinished one or begins a new one.
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
