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
        settings: [.config, .database, .keyFile, .keyCommand, .keyWrapCommand, .logLevel],
        examples: [
            "refresh-worker keys generate": "once, before the worker's first start"
        ],
        exitCodes: [.success, .usage, .internalFailure, .cannotCreate, .inputOutput, .configuration]
    ) { arguments, context, output in
        let path = context.configuration.keyFile
        // After a final loss the ring is made nevertheless.
        if !arguments.has("lost"), !context.inputs.files.exists(path) { try await refuseIfTokensAreSealed(context) }
        let wrapping = context.keyWrapping
        let id: KeyID
        do {
            id = try await BlockingCallQueue.files.run { try KeyRingFile.generate(path: path, wrapping: wrapping) }
        } catch let error as FileError {
            throw CommandError(notGenerated: error, at: path)
        }
        let text = """
            created the key ring \(path) with one key, \(id)
            Back this file up now, in a safe place apart from copies of the database: without it no stored token can \
            be opened, and every user must sign in again.
            """
        output.answer(text) { line in
            line.field("file", path)
            line.field("key", id.description)
        }
        return .success
    }

    private static func refuseIfTokensAreSealed(_ context: CommandContext) async throws {
        let use: KeyUse
        do {
            guard let store = try await context.openStoreIfThere(for: .reading) else { return }
            use = try await store.closing { try await store.keyUse() }
        } catch {
            // A ring can be made before the server of the database is up. The worker checks it at its start.
            context.diagnostics.warning(
                "the database cannot be read, so it is unknown if its tokens are sealed with another key ring",
                ["database": "\(context.configuration.database)", "error": "\(CommandError(error).message)"]
            )
            return
        }
        guard use.tokens > 0 else { return }
        throw CommandError(
            stored: use,
            in: context.configuration.database,
            without: context.configuration.keyFile
        )
    }
}

extension CommandError {
    /// Reports that a new ring would open none of the stored tokens.
    fileprivate init(stored use: KeyUse, in database: DatabaseLocation, without path: String) {
        let tokens = use.tokens.counted("token")
        let keys = use.tokensByKey.keys.sorted().map(\.description).joined(separator: ", ")
        self.init(
            .cannotCreate,
            """
            \(database) holds \(tokens) that need key \(keys), which a new key ring would lack: put a copy of the \
            former one in \(path). If no copy exists, docs/runbook.md#the-key-ring-is-lost says what to do
            """
        )
    }

    /// Reports a key ring that was not created: the file could not be created, unless the disk failed.
    fileprivate init(notGenerated error: FileError, at path: String) {
        switch error.kind {
        case .folderMissing:
            self.init(.cannotCreate, "\(error): run: mkdir -p \(path.parentFolder)")
        case .system(ENOSPC), .system(EDQUOT), .system(EIO), .program:
            self.init(.inputOutput, "\(error)")
        case .library:
            self.init(.internalFailure, "\(error)")
        default:
            self.init(.cannotCreate, "\(error)")
        }
    }
}
