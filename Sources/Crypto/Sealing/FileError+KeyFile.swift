package import Base

extension FileError {
    /// `line` is the faulty line, counted from 1, if the error is in a line.
    init(keyFile path: String, line: Int? = nil, _ detail: String, _ kind: Kind = .unfit) {
        var place = "key file \(path)"
        if let line { place += ", line \(line):" }
        self.init("\(place) \(detail)", kind, path: path)
    }

    /// The description for a process that has the keys in memory: new keys would not open what these have sealed.
    package var descriptionWhileInUse: String {
        guard let path, kind == .missing else { return description }
        return "key file \(path) does not exist any more: put it back, or restore it from a backup"
    }

    init(keyFile path: String, line: Int? = nil, duplicate id: KeyID) {
        self.init(keyFile: path, line: line, "key \(id) is in the file twice: remove one of the two lines")
    }

    init(keyFile path: String, because error: SystemCallError) {
        self.init(keyFile: path, "cannot be used: \(error)", .system(error.code))
    }
}
