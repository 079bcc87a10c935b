import Base
import Glibc
import Testing

@testable import RefreshWorker

/// systemd starts the worker again after code 74, and never after code 78.
@Suite("The exit code distinguishes temporary errors from those that an operator must fix")
struct PassingErrorTests {
    private func failure(_ code: Int32) -> CommandError {
        CommandError(FileError("keys", .system(code)))
    }

    @Test("A key file that cannot be opened temporarily is tried again", arguments: [EIO, EMFILE, ENFILE, ENOMEM])
    func passing(code: Int32) {
        #expect(failure(code).exitCode == .inputOutput)
    }

    @Test(
        "A configuration file that cannot be read for now is tried again, whatever settings are missing without it",
        arguments: [
            (EIO, ExitCode.inputOutput), (EMFILE, .inputOutput), (ENFILE, .inputOutput), (EACCES, .configuration),
        ]
    )
    func configuration(code: Int32, exitCode: ExitCode) {
        let inputs = ConfigurationInputs(
            flags: [ConfigurationInputs.Flag(name: .config, value: "/etc/worker.conf")],
            environment: [:],
            files: FileReader(
                read: { _ throws(InputError) in throw InputError(code: code) },
                readPrivate: { _ throws(InputError) in throw InputError(code: code) },
                exists: { _ in true }
            )
        )
        let error = #expect(throws: CommandError.self) { try Configuration(inputs) }
        #expect(error?.exitCode == exitCode)
    }

    @Test("A key file that stays unusable is a fault of the configuration", arguments: [ELOOP, ENAMETOOLONG, EISDIR])
    func lasting(code: Int32) {
        #expect(failure(code).exitCode == .configuration)
    }
}
