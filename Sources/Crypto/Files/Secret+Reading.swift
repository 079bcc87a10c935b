package import Base
private import Glibc

extension Secret {
    /// Reads a secret from a file, without the newline that editors and `echo` add at the end.
    ///
    /// The file can be a pipe. The call then blocks until the writer closes it.
    package static func read(file path: String, limit: Int = 65536) throws(FileError) -> Secret {
        try read(from: path, limit: limit) { () throws(SystemCallError) in
            try OpenFile(path: path, flags: O_RDONLY).read(limit: limit)
        }
    }

    /// Reads a secret to the end of an open descriptor, such as standard input.
    ///
    /// The descriptor stays open. Blocks until the writer closes its end.
    package static func read(descriptor: Int32, limit: Int = 65536) throws(FileError) -> Secret {
        let source = descriptor == STDIN_FILENO ? "standard input" : "descriptor \(descriptor)"
        return try read(from: source, limit: limit) { () throws(SystemCallError) in
            try OpenFile.read(descriptor: descriptor, limit: limit)
        }
    }

    private static func read(
        from source: String,
        limit: Int,
        _ content: () throws(SystemCallError) -> Secret?
    ) throws(FileError) -> Secret {
        let whole: Secret?
        do throws(SystemCallError) {
            whole = try content()
        } catch {
            throw FileError(unreadable: source, because: error)
        }
        guard let whole else {
            throw FileError("\(source) is longer than the \(limit) bytes that a secret can have")
        }
        return whole.hasSuffix("\n") ? whole.dropping("\n").dropping("\r") : whole
    }

    /// Reads a whole file that only its owner can change and at most its group can read.
    package static func read(privateFile path: String, limit: Int = 65536) throws(FileError) -> Secret {
        let status: FileIdentity
        let content: Secret?
        do throws(SystemCallError) {
            // Non-blocking, because the path can be a pipe.
            let file = try OpenFile(path: path, flags: O_RDONLY | O_NONBLOCK)
            status = try file.status()
            content = status.isRegular ? try file.read(limit: limit) : nil
        } catch {
            throw FileError(unreadable: path, because: error)
        }
        guard status.isRegular else { throw FileError("\(path) is not a regular file") }
        guard status.permissions & 0o027 == 0 else {
            let mode = String(status.permissions, radix: 8)
            var problem = "\(path) is open to others (mode \(mode))"
            if status.owner != geteuid() { problem += " and belongs to \(FileOwner.name(ofUser: status.owner))" }
            throw FileError("\(problem): \(FileOwner.advice(toProtect: path))")
        }
        guard let content else { throw FileError("\(path) is longer than \(limit) bytes") }
        return content
    }
}

extension FileError {
    fileprivate init(unreadable source: String, because error: SystemCallError) {
        let advice = error.code == EACCES ? FileOwner.advice(onDenied: source) : ""
        self.init("\(source) cannot be read: \(error)\(advice)", .system(error.code))
    }
}
