import Base
import Crypto
import Storage

extension Command {
    /// `keys list`: prints the keys of the ring, and the number of tokens that need each.
    static let listKeys = Command(
        words: ["keys", "list"],
        summary: "list the keys by id, and the number of tokens that need each",
        discussion: """
            Prints the id of each key and the number of stored tokens that it seals, or that are bound to it, never the \
            key itself. A key that binds cannot be replaced for the tokens that are bound to it: the copies of the key \
            ring are all that keeps their users signed in.
            """,
        options: [.json],
        settings: [.config, .database, .keyFile, .keyCommand, .logLevel],
        examples: ["refresh-worker keys list": "is the old key still in use?"],
        exitCodes: .ofDatabase()
    ) { _, context, output in
        let keys = KeyRingSummary(try context.openVault().ring.current)
        let keysInUse: [KeyID: Int]?
        if let store = try await context.openStoreIfThere(for: .reading) {
            keysInUse = try await store.closing { try await store.keysInUse() }
        } else {
            keysInUse = nil
        }
        let lines = output.isJSON ? keys.json(keysInUse).map(\.text) : keys.lines(keysInUse)
        lines.forEach { Output.standard.line($0) }
        if keysInUse == nil {
            Output.error.line("there is no database \(context.configuration.database) yet, so nothing is sealed")
        }
        keys.warnings(keysInUse ?? [:]).forEach { Output.error.line($0) }
        return .success
    }
}

/// The output of `keys list`, with the number of stored tokens that need each key, or `nil` without a database.
extension KeyRingSummary {
    /// One line for each key, in the order of the ring.
    func lines(_ keysInUse: [KeyID: Int]?) -> [String] {
        entries.map { entry in
            var line = "\(entry.id)  "
            if let keysInUse {
                let tokens = keysInUse[entry.id, default: 0].counted("token")
                line += "\(entry.role.rawValue.padding(to: 8)) \(tokens)"
            } else {
                line += entry.role.rawValue
            }
            if let end = entry.removableAt { line += ", stays until \(end.iso8601Seconds)" }
            return line
        }
    }

    /// One object for each key.
    func json(_ keysInUse: [KeyID: Int]?) -> [JSONLine] {
        entries.map { entry in
            var line = JSONLine()
            line.field("key", entry.id.description)
            line.field("role", entry.role.rawValue)
            line.fieldOrNull("tokens", keysInUse.map { $0[entry.id] ?? 0 })
            line.fieldOrNull("removable_at", entry.removableAt?.iso8601)
            return line
        }
    }

    /// The problems of the ring.
    func warnings(_ keysInUse: [KeyID: Int]) -> [String] {
        missingKeys(of: keysInUse).map { id in
            """
            warning: \((keysInUse[id] ?? 0).counted("token")) of key \(id), which the ring lacks, cannot be used: \
            restore the key's line from a backup of the key ring, or have those users sign in again
            """
        }
    }

}
