import AccountClient
import Foundation

// The code of docs/app.md, word for word.

struct KeychainTokenStore: TokenStore {
    func load(_ key: TokenKey) throws -> String? {
        var query = item(key)
        query[kSecReturnData] = true
        var found: CFTypeRef?
        let status = SecItemCopyMatching(query as CFDictionary, &found)
        if status == errSecItemNotFound { return nil }
        try check(status)
        return (found as? Data).map { String(decoding: $0, as: UTF8.self) }
    }

    func save(_ token: String, for key: TokenKey) throws {
        let value: [CFString: Any] = [kSecValueData: Data(token.utf8)]
        let status = SecItemUpdate(item(key) as CFDictionary, value as CFDictionary)
        guard status == errSecItemNotFound else { return try check(status) }
        var item = item(key).merging(value) { _, new in new }
        // Readable while the device is locked, for calls made in the background; not carried to another device.
        item[kSecAttrAccessible] = kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly
        try check(SecItemAdd(item as CFDictionary, nil))
    }

    func remove(_ key: TokenKey) throws {
        let status = SecItemDelete(item(key) as CFDictionary)
        if status != errSecItemNotFound { try check(status) }
    }

    private func item(_ key: TokenKey) -> [CFString: Any] {
        [kSecClass: kSecClassGenericPassword, kSecAttrService: "account", kSecAttrAccount: key.rawValue]
    }

    private func check(_ status: OSStatus) throws {
        guard status == errSecSuccess else { throw NSError(domain: NSOSStatusErrorDomain, code: Int(status)) }
    }
}

@MainActor
func askGoogle(_ request: AccountClient.ScopeRequest, presenter: UIViewController) async throws -> GoogleTokens {
    let google = GIDSignIn.sharedInstance
    let result: GIDSignInResult
    if !request.needsSignIn, let user = google.currentUser,
        !Set(request.scopes).isSubset(of: user.grantedScopes ?? [])
    {
        result = try await user.addScopes(request.scopes, presenting: presenter)
    } else {
        result = try await google.signIn(
            withPresenting: presenter,
            hint: google.currentUser?.profile?.email,
            additionalScopes: request.scopes
        )
    }
    let user = result.user
    return GoogleTokens(
        accessToken: user.accessToken.tokenString,
        refreshToken: user.refreshToken.tokenString,
        refreshTokenExpiresIn: user.refreshToken.expirationDate.map { Int($0.timeIntervalSinceNow) },
        scopes: user.grantedScopes
    )
}
