import Base
import Glibc

/// Why a program did not do what a setting asks of it.
struct ExternalCommandError: Error, Equatable, Sendable, CustomStringConvertible {
    enum Reason: Equatable, Sendable {
        /// The program was not found, or the system refused to run it.
        case notStarted(code: Int32)
        case exited(code: Int32)
        case killed(signal: Int32)
        case tooSlow(limit: Duration)
        case tooMuchOutput(limit: Int)
        case noOutput
        case systemCall(SystemCallError)
    }

    let program: String
    let reason: Reason
    /// What the program wrote to standard error, as ``ShownErrorOutput`` shows it.
    var errorOutput = ""

    /// `true` if the same call might succeed later without a change by the operator. A KMS can be out of reach, and a
    /// permission can take minutes until it counts.
    var mayPass: Bool {
        switch reason {
        case .notStarted(let code): FileError.mayPass(code)
        case .exited, .killed, .tooSlow, .noOutput, .systemCall: true
        case .tooMuchOutput: false
        }
    }

    var description: String {
        let sentence = "\(DisplayedText(program)) \(whatHappened)"
        return errorOutput.isEmpty ? sentence : "\(sentence); it wrote: \(errorOutput)"
    }

    private var whatHappened: String {
        switch reason {
        case .notStarted(ENOENT):
            program.contains("/")
                ? "does not exist, or the interpreter in its first line does not: install it, or correct its path"
                : "is not in PATH: install it, or give its whole path"
        case .notStarted(EACCES):
            "cannot be run by user \(FileOwner.nameOfCurrentUser): check its mode and that of its folders"
        case .notStarted(let code): "was not started: \(SystemCallError(call: "posix_spawn", code: code).reason)"
        case .exited(let code): "ended with exit code \(code)"
        case .killed(let signal): "was ended by signal \(signal)"
        case .tooSlow(let limit): "did not end within \(limit.inFineUnits), and was killed"
        case .tooMuchOutput(let limit): "printed more than \(limit) bytes, which is no key ring, and was killed"
        case .noOutput: "printed nothing"
        case .systemCall(let error): "could not be run: \(error)"
        }
    }
}
