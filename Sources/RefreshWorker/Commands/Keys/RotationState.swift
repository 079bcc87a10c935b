import Crypto
import Storage

/// The facts from which a rotation derives its next step.
struct RotationState: Equatable, Sendable {
    var keys: KeyRingSummary
    var workers: [WorkerReport]
    /// The number of stored tokens that need each key.
    var keysInUse: [KeyID: Int]
    /// `true` if this run has begun a rotation. Otherwise it continues an unfinished one or begins a new one.
    var isBegun = false
    /// `true` if the last pass over all grants did not find any more tokens that it could seal again.
    var isExhausted = false

    /// Keys of the ring, other than the sealing key, that seal stored tokens.
    var outdatedKeys: Set<KeyID> {
        let others = keysInUse.filter { $0.value > 0 && $0.key != keys.sealingKeyID }.keys
        // A token stays bound to its key, whatever seals it.
        return Set(others.filter { keys.role(of: $0) != nil && !keys.isBinding($0) })
    }

    /// The number of tokens to seal again.
    var outdatedTokens: Int { outdatedKeys.reduce(0) { $0 + (keysInUse[$1] ?? 0) } }
}
