import Base
import Crypto

/// The checks of `--key-command` and `--key-wrap-command`. The check of the key ring has run the first.
extension Doctor {
    /// Checks that no copy of the ring in plain text is left, which would make the command useless.
    var keyCommand: Check? {
        guard let command = configuration.keyCommand else { return nil }
        return check("key command", orElse: Self.folderAdvice) {
            let path = context.readableKeyFile
            guard try !KeyRingFile.isPlain(path: path) else {
                return .warning(
                    "\(path) holds the key ring in plain text, although --key-command opens it",
                    advice: "put the encrypted file in its place (docs/key-command.md), and keep no plain copy here"
                )
            }
            let file = context.inputs.files.exists(path) ? "\(path)" : "no file: there is no \(path)"
            return .ok("\(command.program) opens \(file)")
        }
    }

    /// Wraps the ring and opens it again, as a command that changes the ring does before it replaces the file.
    var keyWrapCommand: Check? {
        guard let command = configuration.keyWrapCommand, let commands = context.commandedKeyRing?.commands else {
            return nil
        }
        return check("key wrap command") {
            try KeyRingFile.checkWrapping(path: context.readableKeyFile, wrapping: commands)
            return .ok("what \(command.program) prints opens to the same key ring")
        }
    }
}
