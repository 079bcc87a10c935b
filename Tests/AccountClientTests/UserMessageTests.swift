import Foundation
import FoundationNetworking
import Testing

@testable import AccountClient
@testable import Storage

@Suite("Sentences for users")
struct UserMessageTests {
    /// The reasons of grants that work, or that the worker still tries.
    private static let passing: Set<GrantReason> = [
        .none, .invalidGrantUnconfirmed, .refusalUnconfirmed, .clientMismatchUnconfirmed, .accountUnchecked,
        .clockWrong,
    ]

    @Test("Each reason of the worker that ends a connection has a sentence of its own")
    func reasons() throws {
        let unknown = try Self.connection("disconnected", "of_a_later_worker").userMessage
        #expect(unknown?.hasSuffix("Please connect it again.") == true)
        for reason in GrantReason.givenByWorker where !Self.passing.contains(reason) {
            let message = try #require(try Self.connection("disconnected", reason.rawValue).userMessage)
            #expect(message != unknown, "\(reason) has no sentence")
            #expect(Self.isSentence(message))
        }
    }

    @Test("An account that works has none, and one that is tried again does not alarm")
    func passing() throws {
        #expect(try Self.connection("active", "none").userMessage == nil)
        for reason in Self.passing {
            let message = try #require(try Self.connection("retrying", reason.rawValue).userMessage)
            #expect(message.contains("stays connected"))
        }
        let suspended = try #require(try Self.connection("suspended", "admin_policy_enforced").userMessage)
        #expect(suspended.contains("administrator"))
    }

    private static let errors: [AccountError] = [
        .insecureBaseURL, .foreignAddress, .unusableBody, .signedOut, .sessionReplaced,
        .refused(status: 400, code: "INVALID_CREDENTIALS", message: "secret"),
        .refused(status: 401, code: nil, message: "secret"), .refused(status: 403, code: nil, message: "secret"),
        .refused(status: 404, code: "USER_NOT_FOUND", message: "secret"),
        .refused(status: 418, code: "secret", message: "secret"), .refused(status: 429, code: nil, message: nil),
        .refused(status: 503, code: "DEPENDENCY_FAILURE", message: "secret"),
        .otherAccount(expected: "a@gmail.com", found: "b@gmail.com"), .accountIsConnected(connection: "secret"),
        .unknownConnection, .tooManyConnections, .unreadableResponse(status: 200), .unreachable(.timedOut),
        .unreachable(.notConnectedToInternet), .unreachable(.cannotFindHost),
        .tokenStore(.save, domain: "secret", code: 1), .accessToken(domain: "secret", code: 1), .ownSession,
    ]

    @Test("Each error has a sentence without codes and texts of the server", arguments: errors)
    func sentences(error: AccountError) throws {
        let message = try #require(error.userMessage)
        #expect(Self.isSentence(message))
        #expect(!message.contains("secret"))
    }

    @Test("A cancelled call has nothing to tell")
    func cancelled() {
        #expect(AccountError.cancelled.userMessage == nil)
    }

    private static func isSentence(_ text: String) -> Bool {
        text.first?.isUppercase == true && text.last == "." && !text.contains("_") && !text.contains("\n")
    }

    private static func connection(_ state: String, _ reason: String) throws -> AccountClient.Connection {
        let json = #"{"id":"default","state":"\#(state)","reason":"\#(reason)","granted_scopes":[]}"#
        return try JSONDecoder().decode(AccountClient.Connection.self, from: Data(json.utf8))
    }
}
