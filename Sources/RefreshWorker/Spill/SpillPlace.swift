/// Where results lie that a store did not take, and what the files are called.
///
/// For a SQLite file that is its own folder: whoever finds the database finds its results, and they need no other space. For a
/// server it is the service's state folder, or that of the key ring, which the worker's user may write for `keys rotate`.
struct SpillPlace: Equatable, Sendable {
    private static let stateDirectoryName = "STATE_DIRECTORY"

    let folder: String
    /// What the names of all files begin with.
    let stem: String
    /// Whether the store commits into the same folder, so that space freed there helps it.
    let isBesideDatabase: Bool

    init(of place: DatabasePlace, keyFile: String, environment: [String: String]) {
        switch place {
        case .file(let path):
            // SQLite follows symbolic links as well before it names the files beside the database.
            let (folder, name) = Self.split(FileFacts.absolute(path))
            self.folder = folder
            stem = name
            isBesideDatabase = true
        case .server:
            // systemd separates several folders by colons.
            let state = environment[Self.stateDirectoryName]?.split(separator: ":").first.map(String.init)
            folder = state ?? Self.split(FileFacts.absolute(keyFile)).folder
            stem = "refresh-worker"
            isBesideDatabase = false
        }
    }

    /// Disk space that is kept for results, and where the database lies here, for commits.
    var reserve: String { "\(folder)/\(stem).reserve" }

    /// A spill file while it is written for the first time.
    func writing(by worker: String) -> String { "\(folder)/\(stem).writing-\(worker)" }

    /// A spill file.
    func unsaved(by worker: String) -> String { "\(folder)/\(stem).unsaved-\(worker)" }

    /// A new reserve before it has its size.
    func newReserve(by worker: String) -> String { "\(folder)/\(stem).reserve-\(worker)" }

    /// Whether a file of the folder is a spill file, whole or not.
    func isSpill(_ name: String) -> Bool {
        name.hasPrefix("\(stem).unsaved-") || name.hasPrefix("\(stem).writing-")
    }

    /// `true` for the name of a spill file that could not be recovered.
    func isSetAside(_ name: String) -> Bool { name.hasPrefix("\(stem).set-aside-") }

    /// The path of a spill file that could not be recovered.
    static func setAside(_ path: String) -> String {
        let (folder, name) = split(path)
        let parts = name.split(separator: ".", omittingEmptySubsequences: false)
        guard let last = parts.last, let dash = last.firstIndex(of: "-") else { return "\(path).set-aside" }
        return "\(folder)/" + (parts.dropLast() + ["set-aside\(last[dash...])"]).joined(separator: ".")
    }

    private static func split(_ path: String) -> (folder: String, name: String) {
        guard let slash = path.lastIndex(of: "/") else { return (".", path) }
        return (slash == path.startIndex ? "/" : String(path[..<slash]), String(path[path.index(after: slash)...]))
    }
}
