"""The results folder: its names, tables, figures and page. Figures and page only read the folder."""
