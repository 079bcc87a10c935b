// swift-format-ignore-file: AllPublicDeclarationsHaveDocumentation

public import Foundation
public import UIKit

// What Examples/iOS uses of Google's SDK, as Swift imports its headers
// (https://github.com/google/GoogleSignIn-iOS/tree/4d94ec7/GoogleSignIn/Sources/Public/GoogleSignIn). The classes are
// neither Sendable nor bound to an actor, and a function with a completion block runs where it was called.

public final class GIDToken: NSObject {
    public let tokenString: String
    public let expirationDate: Date?

    init(_ tokenString: String, expirationDate: Date? = nil) {
        self.tokenString = tokenString
        self.expirationDate = expirationDate
    }
}

public final class GIDProfileData: NSObject {
    public let email: String

    init(email: String) { self.email = email }
}

public final class GIDSignInResult: NSObject {
    public let user: GIDGoogleUser
    public let serverAuthCode: String? = nil

    init(user: GIDGoogleUser) { self.user = user }
}

public struct GIDSignInError: Error {
    public enum Code: Int, Sendable {
        case hasNoAuthInKeychain = -4
        case canceled = -5
        case scopesAlreadyGranted = -8
    }

    public let code: Code

    package init(_ code: Code) { self.code = code }

    public static var hasNoAuthInKeychain: Code { .hasNoAuthInKeychain }
    public static var canceled: Code { .canceled }
    public static var scopesAlreadyGranted: Code { .scopesAlreadyGranted }
}

public func ~= (code: GIDSignInError.Code, error: any Error) -> Bool { (error as? GIDSignInError)?.code == code }

/// A signed-in user, with the scopes that the phone remembers.
public final class GIDGoogleUser: NSObject {
    public let grantedScopes: [String]?
    public let profile: GIDProfileData? = GIDProfileData(email: "a@gmail.com")
    public let accessToken = GIDToken("access")
    public let refreshToken = GIDToken("refresh", expirationDate: Date(timeIntervalSinceNow: 604_800.5))

    package init(grantedScopes: [String]?) { self.grantedScopes = grantedScopes }

    /// Refuses scopes that the phone remembers, without asking Google
    /// (https://github.com/google/GoogleSignIn-iOS/blob/4d94ec7/GoogleSignIn/Sources/GIDSignIn.m#L358).
    nonisolated(nonsending) public func addScopes(
        _ scopes: [String],
        presenting presentingViewController: UIViewController
    ) async throws -> GIDSignInResult {
        guard !Set(scopes).isSubset(of: grantedScopes ?? []) else { throw GIDSignInError(.scopesAlreadyGranted) }
        return try GIDSignIn.sharedInstance.consent(to: scopes + (grantedScopes ?? []), by: "addScopes")
    }
}

public final class GIDSignIn: NSObject {
    nonisolated(unsafe) public static let sharedInstance = GIDSignIn()

    public package(set) var currentUser: GIDGoogleUser?
    /// The calls that asked the user.
    package var calls: [String] = []
    /// The accounts that `signIn` proposed to the user.
    package var hints: [String?] = []
    /// The scopes that the user refuses, or nil if the user cancels.
    package var refused: [String]? = []

    @discardableResult
    public func handle(_ url: URL) -> Bool { url.scheme?.hasPrefix("com.googleusercontent.apps") == true }

    @discardableResult
    nonisolated(nonsending) public func restorePreviousSignIn() async throws -> GIDGoogleUser {
        guard let currentUser else { throw GIDSignInError(.hasNoAuthInKeychain) }
        return currentUser
    }

    nonisolated(nonsending) public func signIn(
        withPresenting presentingViewController: UIViewController,
        hint: String?,
        additionalScopes: [String]?
    ) async throws -> GIDSignInResult {
        hints.append(hint)
        return try consent(to: additionalScopes ?? [], by: "signIn")
    }

    public func signOut() { currentUser = nil }

    fileprivate func consent(to scopes: [String], by call: String) throws -> GIDSignInResult {
        calls.append(call)
        guard let refused else { throw GIDSignInError(.canceled) }
        let user = GIDGoogleUser(grantedScopes: scopes.filter { !refused.contains($0) })
        currentUser = user
        return GIDSignInResult(user: user)
    }
}
