import Base
import Crypto

/// The programs of `--key-command` and `--key-wrap-command`.
///
/// Both read standard input and not a file. So a new content can be opened before it replaces the old one, and no part
/// of a command stands for a path. All programs that the page names can do that.
struct KeyCommands: KeyRingWrapping {
    static let page = "docs/key-command.md#when-the-command-fails"

    let unwrapping: ExternalCommand
    /// `nil` if no key ring is changed on this machine.
    let wrapping: ExternalCommand?
    let environment: [String: String]
    var limits = ExternalCommand.Limits()

    func unwrap(_ content: Secret?) throws(FileError) -> Secret {
        try run(unwrapping, for: .keyCommand, reading: content)
    }

    func wrap(_ text: Secret) throws(FileError) -> Secret {
        guard let wrapping else {
            throw FileError(
                """
                the key ring cannot be changed, because --key-command opens it and --key-wrap-command is not set: set it \
                (docs/key-command.md), or change the ring where it is kept
                """
            )
        }
        return try run(wrapping, for: .keyWrapCommand, reading: text)
    }

    private func run(
        _ command: ExternalCommand,
        for setting: Setting.Name,
        reading input: Secret?
    ) throws(FileError) -> Secret {
        do throws(ExternalCommandError) {
            return try command.run(reading: input, environment: environment, limits: limits)
        } catch {
            let kind: FileError.Kind = error.mayPass ? .program : .unfit
            throw FileError("--\(setting.rawValue): \(error). See \(Self.page)", kind)
        }
    }
}
