import Base
import Crypto
import Storage

extension Command {
    /// `keys add-binding`: adds a key that refresh tokens are bound to.
    static let addBindingKey = Command(
        words: ["keys", "add-binding"],
        summary: "add a key that refresh tokens are bound to, for --bind-tokens",
        discussion: """
            Adds a key to the key ring. With --bind-tokens, the refresh tokens of exchanged codes are bound to it. A token \
            stays bound to its key: neither keys rotate nor a second key added later changes \
            that. If the key is lost, the users whose tokens are bound to it must sign in again, so back the ring up \
            before you switch --bind-tokens on. docs/binding.md says more.
            """,
        options: [.jsonObject],
        settings: [.config, .keyFile, .keyCommand, .keyWrapCommand, .logLevel],
        examples: ["refresh-worker keys add-binding": "once, before --bind-tokens is switched on"],
        exitCodes: [.success, .usage, .internalFailure, .inputOutput, .configuration]
    ) { _, context, output in
        let path = context.configuration.keyFile
        let wrapping = context.keyWrapping
        let id = try await BlockingCallQueue.files.run { try KeyRingFile.addBinding(path: path, wrapping: wrapping) }
        let text = """
            added the binding key \(id) to \(path)
            Back this file up now, in a safe place apart from copies of the database: if the key is lost, users whose \
            tokens are bound to it must sign in again. Let every worker have the file, because tokens are bound only to a \
            key that all of them hold. One that gets it by LoadCredential reads it at its start. Then switch on \
            --bind-tokens and restart the workers.
            """
        output.answer(text) { line in
            line.field("file", path)
            line.field("key", id.description)
        }
        return .success
    }
}

extension CommandContext {
    /// Refuses to bind tokens without a key to bind them to.
    func checkBinding(with vault: TokenVault) throws(CommandError) {
        guard configuration.bindsTokens, vault.ring.current.bindingKey == nil else { return }
        throw CommandError(
            .configuration,
            """
            --bind-tokens needs a binding key, and the key ring \(readableKeyFile) has none. Make one, and back the ring up: \
            run: refresh-worker keys add-binding --key-file \(configuration.keyFile)
            """
        )
    }
}
