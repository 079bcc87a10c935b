#if canImport(Security)
    public import Foundation
    internal import Security

    /// Stores the tokens in the Keychain.
    ///
    /// They can be read while the device is locked, for calls made in the background, but not before it was unlocked
    /// once after a start. They do not move to another device. Like all Keychain items they outlive a deleted app.
    public struct KeychainTokenStore: TokenStore {
        private let service: String
        private let accessGroup: String?
        private let lock: URL?

        /// Creates a store of the Keychain items of a service.
        ///
        /// - Parameters:
        ///   - service: The name of the items, with the account ``TokenKey``. Use the one under which your app has
        ///     stored these tokens before, and its users stay signed in.
        ///   - accessGroup: The Keychain access group that the app shares with its extensions, or nil.
        ///   - lock: A file in the container of the app group, which is created. An app that shares the items needs it
        ///     for ``exclusively(_:)``.
        public init(service: String = "account", accessGroup: String? = nil, lock: URL? = nil) {
            self.service = service
            self.accessGroup = accessGroup
            self.lock = lock
        }

        /// Returns the token stored under a name, or nil if there is none.
        public func load(_ key: TokenKey) throws -> String? {
            var query = item(key)
            query[kSecReturnData] = true
            var found: CFTypeRef?
            let status = SecItemCopyMatching(query as CFDictionary, &found)
            if status == errSecItemNotFound { return nil }
            try check(status)
            guard let data = found as? Data else { throw error(errSecDecode) }
            return String(decoding: data, as: UTF8.self)
        }

        /// Stores a token under a name and replaces an earlier one.
        public func save(_ token: String, for key: TokenKey) throws {
            let value: [CFString: Any] = [
                kSecValueData: Data(token.utf8),
                kSecAttrAccessible: kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly,
            ]
            let status = SecItemUpdate(item(key) as CFDictionary, value as CFDictionary)
            guard status == errSecItemNotFound else { return try check(status) }
            try check(SecItemAdd(item(key).merging(value) { _, new in new } as CFDictionary, nil))
        }

        /// Removes the token under a name.
        public func remove(_ key: TokenKey) throws {
            let status = SecItemDelete(item(key) as CFDictionary)
            if status != errSecItemNotFound { try check(status) }
        }

        /// Runs the body while no other process holds the lock's file.
        public func exclusively<Value>(_ body: () throws -> Value) throws -> Value {
            guard let lock else { return try body() }
            let file = open(lock.path, O_CREAT | O_RDWR | O_CLOEXEC, 0o600)
            guard file >= 0 else { throw POSIXError(.init(rawValue: errno) ?? .EIO) }
            // Closing the file also unlocks it.
            defer { close(file) }
            while flock(file, LOCK_EX) != 0 {
                guard errno == EINTR else { throw POSIXError(.init(rawValue: errno) ?? .EIO) }
            }
            return try body()
        }

        private func item(_ key: TokenKey) -> [CFString: Any] {
            var item: [CFString: Any] = [
                kSecClass: kSecClassGenericPassword, kSecAttrService: service, kSecAttrAccount: key.rawValue,
                // A Mac has a second, older Keychain, which knows no accessibility.
                kSecUseDataProtectionKeychain: true,
            ]
            if let accessGroup { item[kSecAttrAccessGroup] = accessGroup }
            return item
        }

        private func check(_ status: OSStatus) throws {
            guard status == errSecSuccess else { throw error(status) }
        }

        private func error(_ status: OSStatus) -> NSError { NSError(domain: NSOSStatusErrorDomain, code: Int(status)) }
    }
#endif
