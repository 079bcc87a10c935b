import Base
import Crypto
import Storage
import Telemetry
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

extension KeyRetirement {
    /// The result of `keys retire`.
    enum Outcome: Equatable, Sendable {
        case retired(removableAt: Timestamp)
        case removed
        /// A lost key is not needed any more, although it seals this many stored tokens.
        case givenUp(tokens: Int)

        func text(of id: KeyID, in path: String) -> String {
            switch self {
            case .retired(let end):
                """
                retired key \(id) in \(path): it opens tokens for one more day, and does not seal
                Results that it sealed may still wait to be stored. After \(end.iso8601Seconds) run this command \
                again, or keys rotate, to remove it from the file.
                """
            case .removed:
                """
                removed key \(id) from \(path)
                Backups of the database from before the last rotation still need it: keep a backup of the key ring \
                with this key as long as those.
                """
            case .givenUp(let tokens):
                """
                removed the lost key \(id) from the database: \(KeyListing.tokens(tokens)) sealed with it stay \
                unreadable, and their users must sign in again
                """
            }
        }

        func json(of id: KeyID, in path: String) -> String {
            var line = JSONLine()
            line.field("key", id.description)
            switch self {
            case .retired(let end):
                line.field("result", "retired")
                line.field("file", path)
                line.field("removable_at", end.iso8601)
            case .removed:
                line.field("result", "removed")
                line.field("file", path)
            case .givenUp(let tokens):
                line.field("result", "given_up")
                line.field("unreadable_tokens", tokens)
            }
            return line.text
        }
    }
}
