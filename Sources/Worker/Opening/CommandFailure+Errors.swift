import Base
import Crypto
import HTTPClient
package import Scheduler
import Storage
import Telemetry

extension CommandFailure {
    /// Wraps any error with the exit code that fits it.
    package init(_ error: any Error) {
        switch error {
        case let failure as CommandFailure: self = failure
        case let error as StoreError: self.init(Self.code(of: error), error.message)
        case let error as KeyRingFileError: self.init(error.mayPass ? .inputOutput : .configuration, "\(error)")
        case let error as SecretReadError: self.init(.inputUnreadable, "\(error)")
        case let error as SealError:
            self.init(.configuration, "a stored token cannot be opened: \(error)")
        // Only the start of the client throws this error here; the failure of a request is handled by its caller.
        case let failure as HTTPFailure: self.init(.inputOutput, failure.message)
        case let error as SystemCallError: self.init(.internalFailure, "\(error)")
        default: self.init(.internalFailure, "\(error)")
        }
    }

    /// Creates the failure to get, or to end, a user's tokens.
    package init(_ failure: VendingFailure, ofUser userID: String) {
        let user = "user \(DisplayedText(userID))"
        switch failure {
        case .unknownUser:
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
            self.init(.googleUnreachable, "a fresh token of \(user) is not available now (\(reason)); try again later")
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
