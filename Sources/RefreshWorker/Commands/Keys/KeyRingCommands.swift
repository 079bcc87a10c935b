import Base
import Crypto
import Glibc
import Storage
import Telemetry

extension Command {
    /// `keys generate`: makes a key ring, unless the database holds tokens that it could not open.
    static let generateKeys = Command(
        words: ["keys", "generate"],
        summary: "make a key ring with one new key",
        discussion: """
            Creates the file named by --key-file, mode 0600. An existing key ring is never overwritten. The command \
            refuses while the database holds tokens, because a new key ring opens none of them. If no copy of the \
            former key ring exists, --lost makes a new one.
            """,
        options: [.toggle("lost", "give up the tokens of a key ring that is lost"), .jsonObject],
        settings: [.config, .database, .keyFile, .logLevel],
        examples: [
            "refresh-worker keys generate": "once, before the worker's first start"
        ],
        exitCodes: [.success, .usage, .internalFailure, .cannotCreate, .inputOutput, .configuration]
    ) { arguments, context in
        let path = context.configuration.keyFile
        // After a final loss the ring is made nevertheless.
        if !arguments.has("lost"), !context.inputs.files.exists(path) { try await refuseIfTokensAreSealed(context) }
        let id: KeyID
        do {
            id = try await BlockingCallQueue.files.run { try KeyRingFile.generate(path: path) }
        } catch let error as FileError {
            throw CommandError(notGenerated: error, at: path)
        }
        let text = """
            created the key ring \(path) with one key, \(id)
            Back this file up now, in a safe place apart from copies of the database: without it no stored token can \
            be opened, and every user must sign in again.
            """
        context.answer(text) { line in
            line.field("file", path)
            line.field("key", id.description)
        }
        return .success
    }

    private static func refuseIfTokensAreSealed(_ context: CommandContext) async throws {
        let keysInUse: [KeyID: Int]
        do {
            guard let store = try await context.openStoreIfThere(for: .reading) else { return }
            keysInUse = try await CommandContext.using(store) { try await store.keysInUse() }
        } catch {
            // A ring can be made before the server of the database is up. The worker checks it at its start.
            context.diagnostics.warning(
                "the database cannot be read, so it is unknown if its tokens are sealed with another key ring",
                ["database": "\(context.configuration.database)", "error": "\(CommandError(error).message)"]
            )
            return
        }
        guard !keysInUse.isEmpty else { return }
        throw CommandError(
            sealed: keysInUse,
            in: context.configuration.database,
            without: context.configuration.keyFile
        )
    }
}

extension CommandError {
    /// Reports that a new ring would open none of the stored tokens.
    fileprivate init(sealed keysInUse: [KeyID: Int], in database: DatabaseLocation, without path: String) {
        let tokens = keysInUse.values.reduce(0, +).counted("token")
        let keys = keysInUse.keys.sorted().map(\.description).joined(separator: ", ")
        self.init(
            .cannotCreate,
            """
            \(database) holds \(tokens) sealed with key \(keys), which a new key ring cannot open: put a copy of the \
            former one in \(path). If no copy exists, docs/runbook.md#the-key-ring-is-lost says what to do
            """
        )
    }

    /// Reports a key ring that was not created: the file could not be created, unless the disk failed.
    fileprivate init(notGenerated error: FileError, at path: String) {
        switch error.kind {
        case .folderMissing:
            self.init(.cannotCreate, "\(error): run: mkdir -p \(path.parentFolder)")
        case .system(ENOSPC), .system(EDQUOT), .system(EIO):
            self.init(.inputOutput, "\(error)")
        case .library:
            self.init(.internalFailure, "\(error)")
        default:
            self.init(.cannotCreate, "\(error)")
        }
    }
}

extension Command {
    /// `keys list`: prints the keys of the ring, and the number of tokens that each seals.
    static let listKeys = Command(
        words: ["keys", "list"],
        summary: "list the keys by id, and the number of tokens that each seals",
        discussion: "Prints the id of each key and the number of stored tokens that it seals, never the key itself.",
        options: [.json],
        settings: [.config, .database, .keyFile, .logLevel],
        examples: ["refresh-worker keys list": "is the old key still in use?"],
        exitCodes: .ofDatabase()
    ) { _, context in
        let keys = KeyRingSummary(try context.openVault().ring.current)
        let keysInUse: [KeyID: Int]?
        if let store = try await context.openStoreIfThere(for: .reading) {
            keysInUse = try await CommandContext.using(store) { try await store.keysInUse() }
        } else {
            keysInUse = nil
        }
        let lines = context.printsJSON ? keys.json(keysInUse).map(\.text) : keys.lines(keysInUse)
        lines.forEach { Output.standard.line($0) }
        if keysInUse == nil {
            Output.error.line("there is no database \(context.configuration.database) yet, so nothing is sealed")
        }
        keys.warnings(keysInUse ?? [:]).forEach { Output.error.line($0) }
        return .success
    }
}

/// The output of `keys list`, with the number of stored tokens that each key seals, or `nil` without a database.
extension KeyRingSummary {
    /// One line for each key, in the order of the ring.
    func lines(_ keysInUse: [KeyID: Int]?) -> [String] {
        entries.map { entry in
            let until = entry.removableAt.map { ", stays until \($0.iso8601Seconds)" } ?? ""
            guard let keysInUse else { return "\(entry.id)  \(entry.role.rawValue)\(until)" }
            let tokens = (keysInUse[entry.id] ?? 0).counted("token")
            return "\(entry.id)  \(entry.role.rawValue.padding(to: 8)) \(tokens)\(until)"
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
            warning: \((keysInUse[id] ?? 0).counted("token")) sealed with key \(id), which the ring lacks, cannot be opened: \
            restore the key's line from a backup of the key ring, or have those users sign in again
            """
        }
    }

}

extension String {
    /// Returns the text padded with blanks to a width.
    func padding(to width: Int) -> String {
        self + String(repeating: " ", count: max(0, width - count))
    }
}

/// The keys of a ring by id and role, without their material: enough for every decision about them.
struct KeyRingSummary: Equatable, Sendable {
    enum Role: String, Sendable {
        case seals
        case opens
        /// Opens tokens as well, but does not seal until every worker holds it.
        case pending
        /// Opens tokens for one more day, and does not seal.
        case retired
    }

    struct Entry: Equatable, Sendable {
        let id: KeyID
        let role: Role
        var retiredAt: Timestamp?

        /// The time from which a retired key can leave the file: results that it sealed have been stored or lost by
        /// then.
        var removableAt: Timestamp? { retiredAt.map { $0 + .seconds(24 * 3600) } }
    }

    /// The keys in the order of the ring's file.
    let entries: [Entry]
    let sealingKeyID: KeyID

    func role(of id: KeyID) -> Role? { entries.first { $0.id == id }?.role }

    /// Retired keys that can leave the file.
    func expired(at now: Timestamp) -> [KeyID] {
        entries.filter { entry in entry.removableAt.map { $0 <= now } ?? false }.map(\.id)
    }

    /// The key that the next rotation activates.
    var firstPending: KeyID? { entries.first { $0.role == .pending }?.id }

    /// Keys that seal stored tokens but are missing in the ring: those tokens cannot be opened.
    func missingKeys(of keysInUse: [KeyID: Int]) -> [KeyID] {
        keysInUse.keys.filter { role(of: $0) == nil }.sorted()
    }
}

extension KeyRingSummary {
    init(_ ring: KeyRing) {
        let entries = ring.keys.map { key in
            switch key.role {
            case .active: Entry(id: key.id, role: key.id == ring.sealingKeyID ? .seals : .opens)
            case .pending: Entry(id: key.id, role: .pending)
            case .retired(let since): Entry(id: key.id, role: .retired, retiredAt: since)
            }
        }
        self.init(entries: entries, sealingKeyID: ring.sealingKeyID)
    }
}
