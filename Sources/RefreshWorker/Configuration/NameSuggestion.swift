/// The name that the user probably meant.
extension String {
    /// Returns the candidate with the fewest typing mistakes, or `nil` if none is near enough to suggest.
    ///
    /// Case does not count. Beyond a third of the name's length a suggestion is a guess and would mislead.
    func nearest(among candidates: [String]) -> String? {
        // A very long name is not a typing mistake, and the comparison below is quadratic.
        guard utf8.count <= 64 else { return nil }
        let wanted = Array(lowercased().utf8)
        var nearest: (candidate: String, distance: Int)?
        for candidate in candidates {
            let distance = editDistance(wanted, Array(candidate.lowercased().utf8))
            guard distance <= Swift.max(1, wanted.count / 3), distance < nearest?.distance ?? .max else { continue }
            nearest = (candidate, distance)
        }
        return nearest?.candidate
    }

    /// Returns the end of a message about a name that is not a candidate, which is empty if none is near enough to
    /// suggest.
    func suggestion(among candidates: [String]) -> String {
        nearest(among: candidates).map { "; did you mean \($0)?" } ?? ""
    }
}

/// The edit distance with insertions, deletions, substitutions and swaps of neighbours
/// (optimal string alignment, https://en.wikipedia.org/wiki/Damerau–Levenshtein_distance).
func editDistance(_ left: [UInt8], _ right: [UInt8]) -> Int {
    guard !left.isEmpty, !right.isEmpty else { return max(left.count, right.count) }
    var rowBeforeLast = [Int](repeating: 0, count: right.count + 1)
    var lastRow = Array(0...right.count)
    for row in 1...left.count {
        var current = [row] + [Int](repeating: 0, count: right.count)
        for column in 1...right.count {
            let isSame = left[row - 1] == right[column - 1]
            var cost = lastRow[column - 1] + (isSame ? 0 : 1)
            cost = min(cost, lastRow[column] + 1, current[column - 1] + 1)
            if row > 1, column > 1 {
                let isSwap = left[row - 1] == right[column - 2] && left[row - 2] == right[column - 1]
                if isSwap { cost = min(cost, rowBeforeLast[column - 2] + 1) }
            }
            current[column] = cost
        }
        (rowBeforeLast, lastRow) = (lastRow, current)
    }
    return lastRow[right.count]
}
