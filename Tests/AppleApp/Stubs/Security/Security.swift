// swift-format-ignore-file: AllPublicDeclarationsHaveDocumentation

package import Foundation
package import Synchronization

// What KeychainTokenStore uses of Apple's Security and CoreFoundation frameworks, with their signatures
// (https://developer.apple.com/documentation/security/keychain-items). CFString and CFDictionary are classes there, and
// Swift bridges to them.

public typealias CFString = String
public typealias CFDictionary = [String: Any]
public typealias CFTypeRef = AnyObject
public typealias OSStatus = Int32

public let errSecSuccess: OSStatus = 0
public let errSecItemNotFound: OSStatus = -25_300
public let errSecDuplicateItem: OSStatus = -25_299
public let errSecDecode: OSStatus = -26_275
public let errSecParam: OSStatus = -50

public let kSecClass: CFString = "class"
public let kSecClassGenericPassword: CFString = "genp"
public let kSecAttrService: CFString = "svce"
public let kSecAttrAccount: CFString = "acct"
public let kSecAttrAccessGroup: CFString = "agrp"
public let kSecAttrAccessible: CFString = "pdmn"
public let kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly: CFString = "cku"
public let kSecUseDataProtectionKeychain: CFString = "nleg"
public let kSecReturnData: CFString = "r_Data"
public let kSecValueData: CFString = "v_Data"

/// The Keychain of the tests.
package struct Keychain {
    package struct Item: Equatable {
        package var data: Data
        package var accessible: String

        package init(data: Data, accessible: String) {
            self.data = data
            self.accessible = accessible
        }
    }

    /// By access group, service and account.
    package var items: [String: Item] = [:]
    /// The status of every call, if the Keychain fails.
    package var failure: OSStatus?

    package static let shared = Mutex(Keychain())

    package init() {}
}

/// Runs a call on the item that the query names.
private func withItem(
    _ query: CFDictionary,
    _ body: (inout Keychain.Item?) -> OSStatus
) -> OSStatus {
    guard query[kSecClass] as? String == kSecClassGenericPassword,
        query[kSecUseDataProtectionKeychain] as? Bool == true,
        let service = query[kSecAttrService] as? String, let account = query[kSecAttrAccount] as? String
    else { return errSecParam }
    let group = query[kSecAttrAccessGroup] as? String ?? ""
    return Keychain.shared.withLock { $0.failure ?? body(&$0.items["\(group)/\(service)/\(account)"]) }
}

public func SecItemCopyMatching(_ query: CFDictionary, _ result: UnsafeMutablePointer<CFTypeRef?>?) -> OSStatus {
    var found: Data?
    let status = withItem(query) { item in
        found = item?.data
        return item == nil ? errSecItemNotFound : errSecSuccess
    }
    if query[kSecReturnData] as? Bool == true, let found { result?.pointee = NSData(data: found) }
    return status
}

public func SecItemAdd(_ attributes: CFDictionary, _ result: UnsafeMutablePointer<CFTypeRef?>?) -> OSStatus {
    withItem(attributes) { item in
        guard item == nil else { return errSecDuplicateItem }
        guard let data = attributes[kSecValueData] as? Data,
            let accessible = attributes[kSecAttrAccessible] as? String
        else { return errSecParam }
        item = Keychain.Item(data: data, accessible: accessible)
        return errSecSuccess
    }
}

public func SecItemUpdate(_ query: CFDictionary, _ attributesToUpdate: CFDictionary) -> OSStatus {
    withItem(query) { item in
        if let data = attributesToUpdate[kSecValueData] as? Data { item?.data = data }
        if let accessible = attributesToUpdate[kSecAttrAccessible] as? String { item?.accessible = accessible }
        return item == nil ? errSecItemNotFound : errSecSuccess
    }
}

public func SecItemDelete(_ query: CFDictionary) -> OSStatus {
    withItem(query) { item in
        defer { item = nil }
        return item == nil ? errSecItemNotFound : errSecSuccess
    }
}
