import Base
import Crypto
import HTTPClient
import Scheduler
import Storage

/// A failed command: the message to print and the exit code.
struct CommandError: Error, Equatable, Sendable, CustomStringConvertible {
    let exitCode: ExitCode
    let message: String

    var description: String { message }

    init(_ exitCode: ExitCode, _ message: String) {
        self.exitCode = exitCode
        self.message = message
    }
}

extension CommandError {
    /// Wraps any error with the exit code that fits it.
    init(_ error: any Error) {
        switch error {
        case let failure as CommandError: self = failure
        case let error as StoreError: self.init(Self.code(of: error), error.message)
        case let error as FileError: self.init(error.mayPass ? .inputOutput : .configuration, "\(error)")
        case let error as CryptoError:
            self.init(.configuration, "a stored token cannot be opened: \(error)")
        // Only the start of the client throws this error here. The failure of a request is handled by its caller.
        case let failure as HTTPError: self.init(.inputOutput, failure.message)
        case let error as SystemCallError: self.init(.internalFailure, "\(error)")
        default: self.init(.internalFailure, "\(error)")
        }
    }

    /// Creates the failure to get, or to end, a user's tokens.
    init(_ failure: VendingError, ofUser userID: String) {
        let user = "user \(DisplayedText(userID))"
        switch failure {
        case .unknownGrant:
            self.init(.unknownUser, "no grant of \(user) is stored")
        case .refused(let state, let reason, let since):
            let current = "the grant of \(user) is \(state.rawValue) (\(reason)) since \(since.iso8601Seconds)"
            let demand =
                switch state {
                case .suspended: "\(current): an administrator blocks it, and must lift the block"
                case .reauthRequired, .disconnected: "\(current): the user must sign in again"
                case .active, .retrying:
                    "the access token of \(user) has expired and there is no refresh token: the user must sign in again"
                }
            self.init(.userMustAct, demand)
        case .unavailable(let reason):
            self.init(.peerUnreachable, "a fresh token of \(user) is not available now (\(reason)); try again later")
        case .tooSoon(let wait):
            self.init(.leftForLater, "a refresh of \(user) was tried just now; try again in \(wait.inSeconds) s")
        case .unreadable(let error):
            self.init(.configuration, "the stored token of \(user) cannot be opened: \(error)")
        }
    }

    private static func code(of error: StoreError) -> ExitCode {
        switch error.code {
        case .busy, .inUse: .leftForLater
        case .ioFailure, .diskFull, .unreachable: .inputOutput
        case .readOnly, .cannotOpen, .corrupt, .newerSchema, .refused, .replaced, .moved: .configuration
        case .conflict: .badData
        case .closed, .fault: .internalFailure
        }
    }
}
