import WorkerConfiguration

/// The result of one check of `doctor`, and how to fix the problem.
struct Diagnosis: Equatable, Sendable {
    enum Grade: Sendable {
        case ok
        /// It works, but a person should look at it.
        case warning
        /// The worker cannot work, or not safely.
        case fault
    }

    let grade: Grade
    let subject: String
    /// The finding; unless the grade is `ok`, also what to do about it.
    let words: String
    /// `true` if the cause may be the network or the remote server.
    let isAboutEndpoint: Bool

    private init(_ grade: Grade, _ subject: String, _ words: String, isAboutEndpoint: Bool) {
        self.grade = grade
        self.subject = subject
        self.words = words
        self.isAboutEndpoint = isAboutEndpoint
    }

    static func ok(_ subject: String, _ words: String, isAboutEndpoint: Bool = false) -> Diagnosis {
        Diagnosis(.ok, subject, words, isAboutEndpoint: isAboutEndpoint)
    }

    static func warning(_ subject: String, _ words: String, isAboutEndpoint: Bool = false) -> Diagnosis {
        Diagnosis(.warning, subject, words, isAboutEndpoint: isAboutEndpoint)
    }

    static func fault(_ subject: String, _ words: String, isAboutEndpoint: Bool = false) -> Diagnosis {
        Diagnosis(.fault, subject, words, isAboutEndpoint: isAboutEndpoint)
    }
}

extension Diagnosis {
    /// The width of the column of subjects.
    private static let column = 22

    /// The check as one line, even if the text has several.
    func line(isColoured: Bool) -> String {
        let word = isColoured ? "\u{1b}[\(grade.colour)m\(grade.label)\u{1b}[0m" : grade.label
        let oneLine = words.split(whereSeparator: \.isNewline).joined(separator: "; ")
        let gap = String(repeating: " ", count: 7 - grade.label.count)
        return "\(word)\(gap)\(subject.padding(to: Self.column))\(oneLine)"
    }

    /// The exit code of `doctor`.
    ///
    /// Faults of endpoints alone may be temporary, so they have a code of their own.
    static func exitCode(of diagnoses: [Diagnosis]) -> ExitCode {
        let faults = diagnoses.filter { $0.grade == .fault }
        if faults.isEmpty { return .success }
        return faults.allSatisfy(\.isAboutEndpoint) ? .googleUnreachable : .configuration
    }

    static func summary(of diagnoses: [Diagnosis]) -> String {
        let faults = diagnoses.count { $0.grade == .fault }
        let warnings = diagnoses.count { $0.grade == .warning }
        guard faults + warnings > 0 else { return "all \(diagnoses.count) checks are ok" }
        return "\(diagnoses.count) checks, \(faults) with a fault, \(warnings) with a warning"
    }
}

extension Diagnosis.Grade {
    fileprivate var label: String {
        switch self {
        case .ok: "ok"
        case .warning: "WARN"
        case .fault: "FAULT"
        }
    }

    /// The colours green, yellow and red (https://man7.org/linux/man-pages/man4/console_codes.4.html).
    fileprivate var colour: Int {
        switch self {
        case .ok: 32
        case .warning: 33
        case .fault: 31
        }
    }
}
