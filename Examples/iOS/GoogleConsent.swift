import AccountClient
import GoogleSignIn
import SwiftUI

/// What the app's features need.
let neededScope = "https://www.googleapis.com/auth/gmail.readonly"

/// Signs in and connects the Google account, with one consent.
@MainActor
func signIn(to account: AccountClient, presenter: UIViewController) async throws {
    let google = GIDSignIn.sharedInstance
    let result = try await google.signIn(withPresenting: presenter, hint: nil, additionalScopes: [neededScope])
    try await account.signIn(googleAccessToken: result.user.accessToken.tokenString)
    if result.user.grantedScopes?.contains(neededScope) == true {
        try await account.connectGoogle(GoogleTokens(result.user))
    }
}

/// Asks the user for more scopes, for the first connection, for one more account, or to repair one.
@MainActor
func askGoogle(_ request: AccountClient.ScopeRequest, presenter: UIViewController) async throws -> GoogleTokens {
    let google = GIDSignIn.sharedInstance
    // The SDK has one current user, who can be another account. A new account is the user's choice.
    let email = request.connection == .new ? nil : request.googleEmail ?? google.currentUser?.profile?.email
    if !request.needsSignIn, let user = google.currentUser, user.profile?.email == email,
        !Set(request.scopes).isSubset(of: user.grantedScopes ?? [])
    {
        return GoogleTokens(try await user.addScopes(request.scopes, presenting: presenter).user)
    }
    let result = try await google.signIn(withPresenting: presenter, hint: email, additionalScopes: request.scopes)
    return GoogleTokens(result.user)
}

extension GoogleTokens {
    init(_ user: GIDGoogleUser) {
        self.init(
            accessToken: user.accessToken.tokenString,
            refreshToken: user.refreshToken.tokenString,
            refreshTokenExpiresIn: user.refreshToken.expirationDate.map { Int($0.timeIntervalSinceNow) },
            scopes: user.grantedScopes
        )
    }
}

/// The view controller over which Google's sheet appears.
@MainActor
func presenter() throws -> UIViewController {
    let scenes = UIApplication.shared.connectedScenes.compactMap { $0 as? UIWindowScene }
    let scene = scenes.first { $0.activationState == .foregroundActive } ?? scenes.first
    guard var top = scene?.keyWindow?.rootViewController else { throw CancellationError() }
    while let next = top.presentedViewController { top = next }
    return top
}
