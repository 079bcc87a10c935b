import Glibc
import Testing

@testable import HTTPServer
@testable import RefreshWorker

@Suite("A listener that cannot be opened")
struct ListeningFailureTests {
    @Test(
        "says what to do about the system's reason",
        arguments: [
            (EADDRINUSE, "Address already in use: stop the program"),
            (ENOENT, "No such file or directory: create the folder"),
            (EACCES, "Permission denied: let the worker's user write"), (EMFILE, "Too many open files: check"),
        ]
    )
    func advice(reason: Int32, text: String) {
        let error = HTTPServerError(code: .cannotListen, message: "cannot listen on unix:/run/x", systemError: reason)
        #expect(CommandError(cannotListen: error).message.hasPrefix("cannot listen on unix:/run/x: \(text)"))
    }

    @Test("on an address of another machine names the command that lists those of this one")
    func otherMachine() throws {
        // Documentation only (RFC 5737), so no machine has it.
        let address = ListenAddress.tcp(address: "203.0.113.1", port: 8080)
        let error = #expect(throws: HTTPServerError.self) { try address.tryToBind() }
        #expect(CommandError(cannotListen: try #require(error)).message.hasSuffix("run: ip address"))
    }
}
