private import Glibc

/// Who owns a file, and what makes it one that the worker can use and no one else.
///
///     FileOwner("/etc/refresh-worker/services.json")?.advice()
///     // "run as root: chown -h refresh-worker: /etc/refresh-worker/services.json && chmod 600 /etc/refresh-worker/services.json"
package struct FileOwner: Sendable, CustomStringConvertible {
    private let path: String
    private let id: uid_t
    private let mode: mode_t
    private let folder: uid_t
    /// `true` for a link, and for a file with several names: a change would be one of another file too, which whoever
    /// can write to the folder has chosen.
    private let isLinked: Bool

    /// Returns `nil` if this process cannot see the file.
    package init?(_ path: String) {
        var (file, entry, parent) = (stat(), stat(), stat())
        guard unsafe stat(path, &file) == 0, unsafe lstat(path, &entry) == 0,
            unsafe stat(path.parentFolder, &parent) == 0
        else { return nil }
        self.path = path
        id = file.st_uid
        mode = file.st_mode & 0o7777
        folder = parent.st_uid
        isLinked = entry.st_mode & S_IFMT == S_IFLNK || entry.st_nlink > 1
    }

    package var name: String { Self.name(ofUser: id) }

    /// The owner and the permissions, as an error names them: "it belongs to root (mode 600)".
    package var description: String { "it belongs to \(name) (mode \(String(mode, radix: 8)))" }

    /// The command after which only the worker's user can use the file.
    ///
    /// That is the owner of the folder, unless the folder is root's. There other programs can need the file, as they do
    /// the key of a certificate, so the worker gets a copy. The file of another user stays that user's.
    package func advice(mode: String = "600") -> String {
        let current = geteuid()
        let worker = folder == 0 ? current : folder
        let word = path.shellWord
        guard !isLinked else {
            return "it is a link or has several names: see who made it (ls -l \(word)), and put a file in its place"
        }
        let permit = "chmod \(mode) \(word)"
        guard id == worker else {
            let user = Self.name(ofUser: worker)
            guard folder == worker else {
                return "run as root: install -o \(user) -m \(mode) \(word) COPY, and name the copy instead"
            }
            return "run as root: chown -h \(user): \(word) && \(permit)"
        }
        return id == current ? "run: \(permit)" : "run this as \(name), or as root: \(permit)"
    }

    /// Returns the command that makes a file private, also if this process cannot see the file.
    package static func advice(toProtect path: String) -> String {
        FileOwner(path)?.advice() ?? "run: chmod 600 \(path.shellWord)"
    }

    /// Returns the end of an error about a file that this user cannot open.
    package static func advice(onDenied path: String, mode: String = "600") -> String {
        let user = "user \(nameOfCurrentUser)"
        guard let owner = FileOwner(path) else { return ": \(user) cannot enter its folder" }
        return ": \(user) runs this, and \(owner.description): \(owner.advice(mode: mode))"
    }

    /// Returns a sentence about a file that this user cannot use, or nothing if it is this user's own.
    package static func remedy(for path: String) -> String {
        guard let owner = FileOwner(path), owner.id != geteuid() else { return "" }
        return " User \(nameOfCurrentUser) runs this, and \(owner.description): \(owner.advice())."
    }

    package static var nameOfCurrentUser: String { name(ofUser: geteuid()) }

    /// Returns the name of a user, or the number if there is no name.
    package static func name(ofUser id: UInt32) -> String {
        var entry = unsafe passwd()
        var found: UnsafeMutablePointer<passwd>?
        // Longer than any real entry.
        let size = 65_536
        let buffer = UnsafeMutablePointer<CChar>.allocate(capacity: size)
        defer { unsafe buffer.deallocate() }
        guard unsafe getpwuid_r(id, &entry, buffer, size, &found) == 0, unsafe found != nil else { return "\(id)" }
        return unsafe String(cString: entry.pw_name)
    }
}
