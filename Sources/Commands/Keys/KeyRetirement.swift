import Crypto
import Storage
import Worker

/// The rules by which a key may leave the ring.
enum KeyRetirement {
    /// Returns the reason why the key must stay, or `nil` if it is not needed.
    static func refusal(
        of id: KeyID,
        keys: KeyRingSummary,
        keysInUse: [KeyID: Int],
        workers: [WorkerReport]
    ) -> CommandFailure? {
        switch keys.role(of: id) {
        case nil:
            return CommandFailure(.badData, "the ring has no key \(id): refresh-worker keys list shows its keys")
        case .seals:
            return CommandFailure(
                .leftForLater,
                "key \(id) seals new tokens: replace it first: run: refresh-worker keys rotate"
            )
        case .opens, .pending, .retired:
            break
        }
        if let count = keysInUse[id], count > 0 {
            return CommandFailure(
                .leftForLater,
                "key \(id) still seals \(KeyListing.tokens(count)): run: refresh-worker keys rotate"
            )
        }
        let sealers = workers.filter { $0.sealingKeyID == id }.map(\.id)
        guard sealers.isEmpty else {
            return CommandFailure(
                .leftForLater,
                """
                key \(id) is still the sealing key of worker \(sealers.joined(separator: ", ")): restart it if \
                LoadCredential passes its key ring, otherwise try again in ten seconds
                """
            )
        }
        return nil
    }
}
