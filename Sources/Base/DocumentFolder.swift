import Glibc

/// The folder of the documents that help and errors refer to.
///
/// The texts call it `docs`, as in the sources. An installed program has its documents in `PREFIX/share/doc`.
package struct DocumentFolder: Equatable, Sendable {
    package static let sources = DocumentFolder(path: "docs")

    package let path: String

    package init(path: String) {
        self.path = path
    }

    /// Returns a text with the paths at which the documents really are.
    ///
    /// Other paths that contain `docs/`, such as a database's, stay.
    package func located(_ text: String) -> String {
        self == .sources ? text : text.replacing(/(^|[\s("])docs\/([a-z-]+\.md)/) { "\($0.1)\(path)/\($0.2)" }
    }

    /// Finds the documents of the program in a file such as `/usr/bin/refresh-worker`.
    package static func of(program: String, isFolder: (String) -> Bool) -> DocumentFolder {
        let folders = program.split(separator: "/", omittingEmptySubsequences: true).dropLast()
        guard folders.last == "bin" else { return .sources }
        let path = folders.dropLast().map { "/" + $0 }.joined() + "/share/doc/refresh-worker"
        return isFolder(path) ? DocumentFolder(path: path) : .sources
    }

    /// The documents of the running program.
    package static let current: DocumentFolder = {
        guard let resolved = unsafe realpath("/proc/self/exe", nil) else { return .sources }
        defer { unsafe free(resolved) }
        return of(program: unsafe String(cString: resolved)) { unsafe access($0, R_OK | X_OK) == 0 }
    }()
}
