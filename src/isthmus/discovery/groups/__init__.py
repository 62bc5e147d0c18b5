"""Groups without dimensions: units of columns, their null space, simple exponents of directions that were found.

Pure mathematics and readers of small files. What finds the directions: `discovery`; words on pages: `reports`.
"""
