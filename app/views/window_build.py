"""The fixed parts of the main window: centre and bars, tool bars, menus of the actions."""

from __future__ import annotations

from PySide6.QtCore import QFileSystemWatcher
from PySide6.QtGui import QActionGroup
from PySide6.QtWidgets import QMenu, QStackedWidget, QVBoxLayout, QWidget

from app.action_list import MENUS
from app.views.banners import ErrorBar, FileBar, HistoryBanner, NoticeBar
from app.views.bars import EngineBar, TimeBar
from app.views.docks import connect_panel
from app.views.run_panel import RunPanel
from app.views.start_page import StartPage
from app.views.status_bar import StatusBar


class Building:
    """Makes what every window has, whatever is open."""

    def _build_centre(self) -> None:
        self.run_panel = RunPanel(self.client, self.hub)
        connect_panel(self.run_panel, self.client, self.hub)
        self.start_page = StartPage()
        self.stack = QStackedWidget()
        self.stack.setAccessibleName(self.tr("Centre"))
        self.stack.addWidget(self.start_page)
        self.stack.addWidget(self.run_panel)
        self.history_banner = HistoryBanner()
        self.error_bar, self.file_bar, self.notice_bar = ErrorBar(), FileBar(), NoticeBar()
        self.watcher = QFileSystemWatcher(self)
        centre = QWidget()
        centre.setObjectName("centre")
        centre.setAccessibleName(self.tr("Centre with bars"))
        layout = QVBoxLayout(centre)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        for widget in (self.error_bar, self.notice_bar, self.file_bar, self.history_banner):
            layout.addWidget(widget)
        layout.addWidget(self.stack, 1)
        self.setCentralWidget(centre)
        for drawing in (self.run_panel.detail, self.run_panel.overview):
            drawing.addActions(self.actions_.drawing_actions())

    def _build_bars(self) -> None:
        self.engine_bar = EngineBar(self.actions_)
        self.time_bar = TimeBar(self.actions_)
        for bar in (self.engine_bar, self.time_bar):
            self.addToolBar(bar)
        self.status = StatusBar()
        self.setStatusBar(self.status)

    def _build_menus(self) -> None:
        self.menuBar().setAccessibleName(self.tr("Menu"))
        self.menus: dict[str, QMenu] = {}
        groups: dict[str, QActionGroup] = {}
        for name in MENUS:
            self._menu(name)
        for spec in self.actions_:
            menu = self._menu(spec.menu)
            if spec.split:
                menu.addSeparator()
            action = self.actions_[spec.id]
            menu.addAction(action)
            if spec.group:
                groups.setdefault(spec.group, QActionGroup(self)).addAction(action)
            if not spec.drawing:
                self.addAction(action)
        file = self.menus["File"]
        self.recent_menu = QMenu(self.tr("Open recent"), self)
        self.recent_menu.setToolTipsVisible(True)
        file.insertMenu(self.actions_["file.save"], self.recent_menu)
        self.panel_menu = QMenu(self.tr("Panels"), self)
        self.menus["View"].insertMenu(self.actions_["view.reset"], self.panel_menu)

    def _menu(self, path: str) -> QMenu:
        """The menu of a path such as `View/Colours`, made where it is not there yet."""
        if path not in self.menus:
            parent, _, name = path.rpartition("/")
            menu = QMenu(self.tr(name), self)
            menu.setAccessibleName(name)
            menu.setToolTipsVisible(True)
            if parent:
                self._menu(parent).addMenu(menu)
            else:
                self.menuBar().addMenu(menu)
            self.menus[path] = menu
        return self.menus[path]
