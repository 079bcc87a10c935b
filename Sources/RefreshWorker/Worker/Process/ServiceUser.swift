import Base
import Glibc

/// A user of this machine, as whom a process of root can continue.
struct ServiceUser: Equatable, Sendable {
    let name: String
    private let home: String
    private let id: uid_t
    private let group: gid_t

    static var isRoot: Bool { geteuid() == 0 }

    /// Finds a user by name, and returns `nil` if there is none.
    init?(name: String) throws(SystemCallError) {
        var entry = unsafe passwd()
        var found: UnsafeMutablePointer<passwd>?
        // Longer than any real entry: names, a path and a comment.
        let size = 65_536
        let buffer = UnsafeMutablePointer<CChar>.allocate(capacity: size)
        defer { unsafe buffer.deallocate() }
        let code = unsafe getpwnam_r(name, &entry, buffer, size, &found)
        guard code == 0 else { throw SystemCallError(call: "getpwnam", code: code) }
        guard unsafe found != nil else { return nil }
        self.name = name
        home = unsafe String(cString: entry.pw_dir)
        id = unsafe entry.pw_uid
        group = unsafe entry.pw_gid
    }

    /// Gives up the rights of root for the rest of this process.
    ///
    /// Call it before the first thread is started, because it changes the environment, and before
    /// ``ProcessSetup/forbidDumps()``, which a change of the user undoes.
    func become() throws(SystemCallError) {
        // The groups first: without root's rights they cannot be set.
        guard unsafe initgroups(name, group) == 0 else { throw SystemCallError(call: "initgroups", code: errno) }
        // For root they set the real, effective and saved ids at once.
        guard setgid(group) == 0 else { throw SystemCallError(call: "setgid", code: errno) }
        guard setuid(id) == 0 else { throw SystemCallError(call: "setuid", code: errno) }
        // A process that kept a capability could become root again.
        guard id == 0 || setuid(0) != 0 else { throw SystemCallError(call: "giving up root", code: EPERM) }
        // libpq looks for certificates there. The service has this value from systemd.
        guard unsafe setenv("HOME", home, 1) == 0 else { throw SystemCallError(call: "setenv", code: errno) }
    }
}
