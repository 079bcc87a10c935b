import Secrets
import Store

/// What a rotation goes by.
struct RotationPicture: Equatable, Sendable {
    var roster: KeyRoster
    var workers: [WorkerReport]
    /// How many stored tokens each key seals.
    var keysInUse: [KeyID: Int]
    /// Whether this run has a rotation in hand; if not, it goes on with an unfinished one or begins a new one.
    var isBegun = false
    /// Whether the last pass over all grants found nothing more that it could seal anew.
    var isExhausted = false

    /// Keys of the ring, other than the one that seals, with which tokens are sealed.
    var outdatedKeys: Set<KeyID> {
        Set(keysInUse.filter { $0.value > 0 && $0.key != roster.sealingKeyID && roster.role(of: $0.key) != nil }.keys)
    }

    /// How many tokens are to be sealed anew.
    var outdatedTokens: Int { outdatedKeys.reduce(0) { $0 + (keysInUse[$1] ?? 0) } }
}

/// What a rotation does next.
///
/// It follows from what is stored alone, so a rotation that was interrupted goes on where it stopped.
enum RotationStep: Equatable, Sendable {
    case addKey
    /// Some workers cannot open what the new key will seal.
    case awaitHolders(of: KeyID, lacking: [String])
    case promote(KeyID)
    /// Some workers still seal with another key, so that a pass now would miss what they write.
    case awaitSealers(with: KeyID, lacking: [String])
    case reseal(with: KeyID)
    case finish(with: KeyID)

    static func next(in picture: RotationPicture) -> RotationStep {
        if let key = picture.roster.firstPending {
            let lacking = picture.workers.filter { !$0.keyIDs.contains(key) }.map(\.id)
            return lacking.isEmpty ? .promote(key) : .awaitHolders(of: key, lacking: lacking)
        }
        let key = picture.roster.sealingKeyID
        let lacking = picture.workers.filter { $0.sealingKeyID != key }.map(\.id)
        let isUnfinished = !picture.outdatedKeys.isEmpty || !lacking.isEmpty
        guard picture.isBegun || isUnfinished else { return .addKey }
        guard lacking.isEmpty else { return .awaitSealers(with: key, lacking: lacking) }
        return picture.outdatedKeys.isEmpty || picture.isExhausted ? .finish(with: key) : .reseal(with: key)
    }
}
