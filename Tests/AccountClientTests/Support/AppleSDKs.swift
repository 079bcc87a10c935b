import Foundation
import Synchronization
import Testing

// The parts of Apple's Security framework and of Google's SDK that docs/app.md uses. Neither exists on Linux.

typealias CFString = String
typealias CFDictionary = [String: Any]
typealias CFTypeRef = Any
typealias OSStatus = Int32

let errSecSuccess: OSStatus = 0
let errSecItemNotFound: OSStatus = -25_300
let errSecDuplicateItem: OSStatus = -25_299
let NSOSStatusErrorDomain = "NSOSStatusErrorDomain"
let kSecClass = "class"
let kSecClassGenericPassword = "genp"
let kSecAttrService = "svce"
let kSecAttrAccount = "acct"
let kSecAttrAccessible = "pdmn"
let kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly = "cku"
let kSecReturnData = "r_Data"
let kSecValueData = "v_Data"

/// The items of the Keychain by service and account.
let keychain = Mutex<[String: (data: Data, accessible: String)]>([:])

private func name(_ query: CFDictionary) -> String {
    #expect(query[kSecClass] as? String == kSecClassGenericPassword)
    return "\(query[kSecAttrService] ?? "")/\(query[kSecAttrAccount] ?? "")"
}

func SecItemCopyMatching(_ query: CFDictionary, _ result: inout CFTypeRef?) -> OSStatus {
    guard let item = keychain.withLock({ $0[name(query)] }) else { return errSecItemNotFound }
    if query[kSecReturnData] as? Bool == true { result = item.data }
    return errSecSuccess
}

func SecItemUpdate(_ query: CFDictionary, _ changes: CFDictionary) -> OSStatus {
    guard let data = changes[kSecValueData] as? Data else { return errSecSuccess }
    return keychain.withLock { $0[name(query)]?.data = data } == nil ? errSecItemNotFound : errSecSuccess
}

func SecItemAdd(_ item: CFDictionary, _ result: Never?) -> OSStatus {
    guard let data = item[kSecValueData] as? Data, let accessible = item[kSecAttrAccessible] as? String else {
        return -50
    }
    return keychain.withLock { items in
        guard items[name(item)] == nil else { return errSecDuplicateItem }
        items[name(item)] = (data, accessible)
        return errSecSuccess
    }
}

func SecItemDelete(_ query: CFDictionary) -> OSStatus {
    keychain.withLock { $0.removeValue(forKey: name(query)) } == nil ? errSecItemNotFound : errSecSuccess
}

@MainActor
final class UIViewController {}

struct GIDToken {
    let tokenString: String
    let expirationDate: Date?
}

struct GIDProfileData {
    let email: String
}

struct GIDSignInResult {
    let user: GIDGoogleUser
}

struct GIDSignInError: Error, Equatable {
    static let scopesAlreadyGranted = GIDSignInError(code: -8)
    let code: Int
}

/// A signed-in user, with the scopes that the phone remembers.
struct GIDGoogleUser {
    var grantedScopes: [String]?
    let profile: GIDProfileData? = GIDProfileData(email: "a@gmail.com")
    let accessToken = GIDToken(tokenString: "access", expirationDate: nil)
    let refreshToken = GIDToken(tokenString: "refresh", expirationDate: Date(timeIntervalSinceNow: 604_800.5))

    /// Refuses scopes that the phone remembers, without asking Google
    /// (https://github.com/google/GoogleSignIn-iOS/blob/4d94ec7/GoogleSignIn/Sources/GIDSignIn.m#L358).
    @MainActor
    func addScopes(_ scopes: [String], presenting: UIViewController) async throws -> GIDSignInResult {
        guard !Set(scopes).isSubset(of: grantedScopes ?? []) else { throw GIDSignInError.scopesAlreadyGranted }
        return GIDSignIn.sharedInstance.consent(to: scopes + (grantedScopes ?? []), by: "addScopes")
    }
}

@MainActor
final class GIDSignIn {
    static let sharedInstance = GIDSignIn()
    var currentUser: GIDGoogleUser?
    private(set) var calls: [String] = []

    func signIn(
        withPresenting: UIViewController,
        hint: String?,
        additionalScopes: [String]?
    ) async throws -> GIDSignInResult {
        consent(to: additionalScopes ?? [], by: "signIn")
    }

    fileprivate func consent(to scopes: [String], by call: String) -> GIDSignInResult {
        calls.append(call)
        let user = GIDGoogleUser(grantedScopes: scopes)
        currentUser = user
        return GIDSignInResult(user: user)
    }
}
