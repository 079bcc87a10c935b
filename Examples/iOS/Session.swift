import AccountClient
import Foundation
import GoogleSignIn
import Observation

@MainActor @Observable
final class Session {
    let account: AccountClient
    private(set) var state: AccountClient.SessionState?
    private(set) var profile: AccountClient.Profile?
    private(set) var failure: String?

    init(account: AccountClient) { self.account = account }

    func follow() async {
        for await change in account.sessionChanges {
            state = change.state
            if state == .signedOut { profile = nil }
            if change.cause == .sessionEnded { failure = AccountError.signedOut.userMessage }
        }
    }

    func run(_ calls: @MainActor (AccountClient) async throws -> Void = { _ in }) async {
        failure = nil
        do {
            try await calls(account)
            if try await account.isSignedIn { profile = try await account.profile() }
        } catch GIDSignInError.canceled {  // Google's sheet was closed.
        } catch let error as AccountError {
            failure = error.userMessage
        } catch {
            failure = error.localizedDescription
        }
    }
}

extension Session {
    convenience init(baseURL: String) {
        guard let url = URL(string: baseURL) else { fatalError("BACKEND_BASE_URL in Info.plist is not a URL") }
        do {
            self.init(account: try AccountClient(baseURL: url, tokens: KeychainTokenStore()))
        } catch {
            fatalError("BACKEND_BASE_URL in Info.plist: \(error)")
        }
    }
}
