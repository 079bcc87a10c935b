package import Crypto
private import Glibc

/// A user of this machine, as whom a process of root can continue.
package struct ServiceUser: Equatable, Sendable {
    package let name: String
    private let id: uid_t
    private let group: gid_t

    package static var isRoot: Bool { geteuid() == 0 }

    /// Finds a user by name; `nil` if there is none.
    package init?(name: String) throws(SystemCallError) {
        try unsafe self.init { entry, buffer, size, found in unsafe getpwnam_r(name, entry, buffer, size, found) }
    }

    /// Finds a user by number; `nil` if there is none.
    package init?(id: UInt32) throws(SystemCallError) {
        try unsafe self.init { entry, buffer, size, found in unsafe getpwuid_r(id, entry, buffer, size, found) }
    }

    private init?(
        _ find: (
            UnsafeMutablePointer<passwd>, UnsafeMutablePointer<CChar>, Int,
            UnsafeMutablePointer<UnsafeMutablePointer<passwd>?>
        ) -> Int32
    ) throws(SystemCallError) {
        var entry = unsafe passwd()
        var found: UnsafeMutablePointer<passwd>?
        // Longer than any real entry: names, a path and a comment.
        let size = 65_536
        let buffer = UnsafeMutablePointer<CChar>.allocate(capacity: size)
        defer { unsafe buffer.deallocate() }
        let code = unsafe find(&entry, buffer, size, &found)
        guard code == 0 else { throw SystemCallError(call: "getpwent", code: code) }
        guard unsafe found != nil else { return nil }
        name = unsafe String(cString: entry.pw_name)
        id = unsafe entry.pw_uid
        group = unsafe entry.pw_gid
    }

    /// Gives up the rights of root for the rest of this process, on all threads.
    package func become() throws(SystemCallError) {
        // The groups first: without root's rights they cannot be set.
        guard unsafe initgroups(name, group) == 0 else { throw SystemCallError(call: "initgroups", code: errno) }
        // For root they set the real, effective and saved ids at once.
        guard setgid(group) == 0 else { throw SystemCallError(call: "setgid", code: errno) }
        guard setuid(id) == 0 else { throw SystemCallError(call: "setuid", code: errno) }
    }
}
