import Base
import Crypto

extension Secret {
    /// Reads a file that a setting names and that holds a secret, if its permissions keep it private.
    ///
    /// Blocks for a moment. `unreadable` is the exit code if the system refuses the file permanently.
    static func read(
        privateFile path: String,
        for flag: String,
        unreadable: ExitCode = .configuration
    ) throws(CommandError) -> Secret {
        do throws(FileError) {
            return try Secret.read(privateFile: path)
        } catch {
            let code: ExitCode =
                switch error.kind {
                case .system: error.mayPass ? .inputOutput : unreadable
                default: .configuration
                }
            throw CommandError(code, "\(flag): \(error)")
        }
    }
}
