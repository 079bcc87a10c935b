private import Glibc

extension Secret {
    /// Reads a whole file that only its owner may change and at most its group may read.
    package static func read(privateFile path: String, limit: Int = 65536) throws(PrivateFileError) -> Secret {
        let status: OpenFile.Status
        let content: Secret?
        do throws(SystemCallError) {
            // Non-blocking, because the path may be a pipe.
            let file = try OpenFile(path: path, flags: O_RDONLY | O_NONBLOCK)
            status = try file.status()
            content = status.isRegular ? try file.read(limit: limit) : nil
        } catch {
            throw PrivateFileError(path: path, reason: .system(error))
        }
        guard status.isRegular else { throw PrivateFileError(path: path, reason: .notRegular) }
        guard status.permissions & 0o027 == 0 else {
            throw PrivateFileError(path: path, reason: .open(permissions: status.permissions))
        }
        guard let content else { throw PrivateFileError(path: path, reason: .tooLong(limit: limit)) }
        return content
    }
}
