import Glibc
import Testing

@testable import RefreshWorker
@testable import Secrets

/// systemd starts the worker again after code 74, and never after code 78.
@Suite("The exit code distinguishes temporary errors from those that an operator must fix")
struct PassingErrorTests {
    private func failure(_ code: Int32) -> CommandFailure {
        CommandFailure(KeyRingFileError(path: "keys", reason: .system(SystemCallError(call: "open", code: code))))
    }

    @Test("A key file that cannot be opened temporarily is tried again", arguments: [EIO, EMFILE, ENFILE, ENOMEM])
    func passing(code: Int32) {
        #expect(failure(code).exitCode == .inputOutput)
    }

    @Test("A key file that stays unusable is an error of the configuration", arguments: [ELOOP, ENAMETOOLONG, EISDIR])
    func lasting(code: Int32) {
        #expect(failure(code).exitCode == .configuration)
    }
}
