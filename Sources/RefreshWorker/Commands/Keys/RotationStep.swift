import Crypto
import Storage

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
